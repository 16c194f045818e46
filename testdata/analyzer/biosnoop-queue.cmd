biosnoop -Q events.tape
