//: what A Go pool of eight goroutines behind a channel, a mutex, and a ticker of 50 ms.
//: healthy
package main

import (
	"os"
	"sync"
	"time"
)

func main() {
	work := make(chan int)
	var lock sync.Mutex
	var group sync.WaitGroup
	total := 0
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range work {
				text, _ := os.ReadFile("/etc/passwd")
				lock.Lock()
				total += n + len(text)
				lock.Unlock()
			}
		}()
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	for i := 0; i < 24; i++ {
		<-ticker.C
		work <- i
		work <- i
	}
	close(work)
	group.Wait()
}
