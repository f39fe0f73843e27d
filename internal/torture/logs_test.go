package torture

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
)

func TestLogs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"0-1": `{"msg":"lane lost"}` + "\n==================\nWARNING: DATA RACE\nRead at 0x00c\n",
		"1-2": "panic: runtime error\n\ngoroutine 1 [running]:\n",
		"2-3": `{"msg":"event","error":"the publisher panicked: oh"}` + "\n" + leaked +
			"goroutine 7 [select]: | main.loop()\n",
	} {
		if err := os.WriteFile(logFile(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := readLogs(folder)
	if err != nil {
		t.Fatal(err)
	}
	if found.races != 1 || found.panics != 2 || found.leaks != 1 || len(found.problems) != 4 {
		t.Errorf("found %+v", found)
	}
}

// A goroutine that is left is written down; those of the process itself are not.
func TestLeaks(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	synctest.Test(t, func(*testing.T) { // it waits for some seconds, which take no time in a bubble
		left := make(chan struct{})
		defer close(left)
		began := make(chan struct{})
		go leaksOnPurpose(began, left)
		<-began
		reportLeaks(&text)
	})
	if !strings.Contains(text.String(), leaked) || !strings.Contains(text.String(), "leaksOnPurpose") {
		t.Errorf("the log says %q", text.String())
	}
	if strings.Contains(text.String(), "reportLeaks(") {
		t.Error("it takes itself for a leak")
	}
}

func leaksOnPurpose(began, left chan struct{}) {
	close(began)
	<-left
}
