requests --slowest 9 requests.tape
