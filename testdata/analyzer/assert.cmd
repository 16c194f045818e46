assert sample.tape expect.txt
