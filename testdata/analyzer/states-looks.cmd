states looks.tape
