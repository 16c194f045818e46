top -e openat --by args.flags,syscall --metric count --top 6 --format csv sample.tape
