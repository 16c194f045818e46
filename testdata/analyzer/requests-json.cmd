requests --format json requests.tape
