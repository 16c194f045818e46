requests requests.tape
