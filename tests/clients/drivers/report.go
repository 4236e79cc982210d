// What both drivers in Go report.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
)

func called(name string, isRight bool, err error) {
	if err != nil || !isRight {
		log.Fatalf("%s: %v, right: %v", name, err, isRight)
	}
	fmt.Println("called", name)
}

func save(name string, data []byte) {
	if err := os.WriteFile(filepath.Join(os.Getenv("OUT"), name), data, 0o644); err != nil {
		log.Fatal(err)
	}
}
