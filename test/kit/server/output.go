package server

import (
	"bytes"
	"sync"
)

// Output is what programs have written, for a test that reads it while they write.
type Output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *Output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(text)
}

func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
