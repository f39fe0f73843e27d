package present_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
)

type row struct {
	Name  string `json:"name"`
	Count string `json:"count"`
	Error string `json:"error,omitempty"`
}

var columns = []present.Column[row]{
	{Name: "NAME", Of: func(r row) string { return r.Name }},
	{Name: "COUNT", Of: func(r row) string { return r.Count }, Right: true, Style: func(row) present.Style {
		return present.Bad
	}},
	{Name: "ERROR", Of: func(r row) string { return r.Error }, Optional: true},
}

// What people and programs see of the same rows.
func TestList(t *testing.T) {
	t.Parallel()
	rows := []row{{Name: "ordérs", Count: "12"}, {Name: "b\x1b[2J\n\u202e\u007fx\U000e0041", Count: "3"}}
	for name, c := range map[string]struct {
		format present.Format
		colors bool
		rows   []row
		want   string
	}{
		"table": {present.Table, false, rows, "NAME    COUNT\nordérs     12\nb x         3\n"},
		"colours": {
			present.Table, true, rows[:1], "\x1b[2mNAME\x1b[0m    \x1b[2mCOUNT\x1b[0m\nordérs     \x1b[31m12\x1b[0m\n",
		},
		"nothing": {present.Table, false, nil, "there is nothing\n"},
		"json": {
			present.JSON, true, rows[:1], "[\n  {\n    \"name\": \"ordérs\",\n    \"count\": \"12\"\n  }\n]\n",
		},
		"no json": {present.JSON, false, nil, "[]\n"},
		"ndjson": {
			present.NDJSON, true, rows,
			"{\"name\":\"ordérs\",\"count\":\"12\"}\n" +
				"{\"name\":\"b\\u001b[2J\\n\\u202e\\u007fx\\udb40\\udc41\",\"count\":\"3\"}\n",
		},
	} {
		var out strings.Builder
		p := present.New(&out, c.format, c.colors)
		if err := present.List(p, c.rows, "there is nothing", columns...); err != nil {
			t.Error(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", name, out.String(), c.want)
		}
	}
}

func TestOneAndStream(t *testing.T) {
	t.Parallel()
	for format, want := range map[present.Format]string{
		present.Table:  "it is a\na came\n",
		present.JSON:   "{\n  \"name\": \"a\",\n  \"count\": \"\"\n}\n{\"name\":\"a\",\"count\":\"\"}\n",
		present.NDJSON: "{\"name\":\"a\",\"count\":\"\"}\n{\"name\":\"a\",\"count\":\"\"}\n",
	} {
		var out strings.Builder
		p := present.New(&out, format, false)
		text := func() []string { return []string{"it is " + p.Paint(present.Bold, "a")} }
		if err := p.One(row{Name: "a"}, text); err != nil {
			t.Error(err)
		}
		if err := p.Stream(row{Name: "a"}, func() string { return "a came" }); err != nil {
			t.Error(err)
		}
		if out.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", format, out.String(), want)
		}
	}
}
