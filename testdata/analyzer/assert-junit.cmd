assert --junit sample.tape expect.txt
