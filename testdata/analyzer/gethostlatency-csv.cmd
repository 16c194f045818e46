gethostlatency --format csv tools.tape
