requests --client --slowest 9 requests.tape
