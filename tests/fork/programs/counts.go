// SPDX-License-Identifier: Apache-2.0

// Objects, goroutines on threads, and a map: see programs.bats.
package main

import (
	"fmt"
	"hash/crc32"
	"os"
	"time"
)

var kept = map[int]string{}

func sum() (s uint32) {
	for i := 0; i < len(kept); i++ {
		s ^= crc32.ChecksumIEEE([]byte(kept[i])) * uint32(i+1)
	}
	return s
}

func main() {
	for i := 0; i < 50000; i++ {
		kept[i] = fmt.Sprint("text ", i)
	}
	first := sum()
	for n := 1; ; n++ {
		sums := make(chan uint32)
		for i := 0; i < 3; i++ {
			go func() { sums <- sum() }()
		}
		for i := 0; i < 3; i++ {
			if s := <-sums; s != first {
				os.WriteFile("/bad", []byte(fmt.Sprint(s, " in place of ", first)), 0o644)
			}
		}
		os.WriteFile("/n", []byte(fmt.Sprintln(n)), 0o644)
		time.Sleep(10 * time.Millisecond)
	}
}
