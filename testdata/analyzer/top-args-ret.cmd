top -e read --by comm --value ret --hist sample.tape
