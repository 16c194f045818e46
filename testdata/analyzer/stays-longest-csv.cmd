stays --longest --format csv looks.tape
