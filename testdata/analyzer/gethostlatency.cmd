gethostlatency tools.tape
