top -e read,openat --by args.fd,args.filename,ret sample.tape
