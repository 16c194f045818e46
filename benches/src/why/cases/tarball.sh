#: what tar packs the headers of the system into a compressed file and lists it.
#: healthy
#: needs tar gzip
#: prepare /bin/sh -c 'tar cf warm.tar /usr/include/linux 2>/dev/null'
tar czf headers.tgz /usr/include/linux 2>/dev/null
tar tzf headers.tgz | wc -l
