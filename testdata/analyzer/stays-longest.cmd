stays --longest looks.tape
