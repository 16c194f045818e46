requests --client requests.tape
