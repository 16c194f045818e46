requests --slowest 9 --format csv requests.tape
