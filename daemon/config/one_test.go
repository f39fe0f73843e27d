package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One key can be asked for where the rest of the configuration is wrong, missing or another program's.
func TestOneKey(t *testing.T) {
	t.Parallel()
	one := Text("http.listen", Spec[string]{Default: ":1", Doc: "One.", Check: func(text string) error {
		if text == "refused" {
			return errors.New("it is")
		}
		return nil
	}})
	set := Set{Prefix: "X_", Keys: []AnyKey{
		one, Text("needed", Spec[string]{Required: true, Doc: "Another."}), Integer("number", Spec[int]{Doc: "A third."}),
	}, Check: func(*Values) []Problem { return []Problem{{Text: "never asked"}} }}
	folder := t.TempDir()
	file, broken := filepath.Join(folder, "good.yaml"), filepath.Join(folder, "broken.yaml")
	for name, text := range map[string]string{file: "http: {listen: ':2'}\nnumber: x\nunknown: 1\n", broken: "http: ["} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args, environ string
		want, problem string
	}{
		{want: ":1"},
		{environ: "X_NUMBER=x X_NOT_KNOWN=1 X_HTTP_LISTEN=:3", want: ":3"},
		{args: "--config=" + file, environ: "X_NOT_KNOWN=1", want: ":2"},
		{environ: "X_CONFIG=" + file, want: ":2"},
		{args: "--http-listen=:4", environ: "X_HTTP_LISTEN=:3 X_CONFIG=" + file, want: ":4"},
		{args: "--http-listen=:4 --config=" + broken, want: ":4"},
		{environ: "X_HTTP_LISTEN=:3 X_CONFIG=" + broken, want: ":3"},
		{args: "--config=" + broken, problem: "broken.yaml"},
		{args: "--config=/no/file", problem: "/no/file"},
		{args: "--http-lsten=:4", problem: "did you mean --http-listen?"},
		{environ: "X_HTTP_LISTEN=refused", problem: "environment X_HTTP_LISTEN: http.listen"},
	} {
		values, err := set.LoadOne(one, strings.Fields(c.args), strings.Fields(c.environ))
		switch {
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%+v: %v", c, err)
		case c.problem == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.problem == "" && one.Get(values) != c.want:
			t.Errorf("%+v: got %s", c, one.Get(values))
		}
	}
}
