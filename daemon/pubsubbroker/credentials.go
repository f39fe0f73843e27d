package pubsubbroker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

// scope is what a publisher asks for.
const scope = "https://www.googleapis.com/auth/pubsub"

// allowed are the kinds of credentials.
var allowed = []credentials.CredType{
	credentials.ServiceAccount, credentials.AuthorizedUser, credentials.ExternalAccount,
	credentials.ImpersonatedServiceAccount,
}

// readCredentials reads a file and says what is wrong with it, without quoting it.
func readCredentials(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	_, err = parseCredentials(text)
	return text, err
}

func parseCredentials(text []byte) (*auth.Credentials, error) {
	var kind struct {
		Type credentials.CredType `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil || !slices.Contains(allowed, kind.Type) {
		return nil, fmt.Errorf("must be JSON of a type among %v", allowed)
	}
	if startsProgram(text) {
		return nil, errors.New("has a credential_source.executable: whoever writes the file would choose a program that " +
			"runs here; have it write a token to a file, and name that as credential_source.file")
	}
	parsed, err := credentials.NewCredentialsFromJSON(kind.Type, text, &credentials.DetectOptions{Scopes: []string{scope}})
	if err != nil {
		return nil, errors.New("is not what Google's client takes for credentials") // its error may quote
	}
	return parsed, nil
}

// startsProgram tells whether Google's client would start a program that the file names, for these credentials or for
// those that they impersonate with.
func startsProgram(text []byte) bool {
	var found struct {
		Source struct {
			Executable json.RawMessage `json:"executable"`
		} `json:"credential_source"`
		Impersonates json.RawMessage `json:"source_credentials"`
	}
	if json.Unmarshal(text, &found) != nil {
		return true // nobody knows what the client would make of it
	}
	if len(found.Source.Executable) > 0 && string(found.Source.Executable) != "null" {
		return true
	}
	return len(found.Impersonates) > 0 && startsProgram(found.Impersonates)
}

// newCredentials are those of a file, whatever it holds at the time. The project that pays and the cloud that it is for
// are asked for once, when the client is made.
func newCredentials(file string) *auth.Credentials {
	held := &fileCredentials{file: file}
	property := func(of func(*auth.Credentials, context.Context) (string, error)) auth.CredentialsPropertyFunc {
		return func(ctx context.Context) (string, error) {
			current, err := held.current()
			if err != nil {
				return "", err
			}
			return of(current, ctx)
		}
	}
	return auth.NewCredentials(&auth.CredentialsOptions{
		TokenProvider:          auth.NewCachedTokenProvider(held, nil),
		QuotaProjectIDProvider: property((*auth.Credentials).QuotaProjectID),
		UniverseDomainProvider: property((*auth.Credentials).UniverseDomain),
	})
}

// fileCredentials fetches tokens with what the file holds.
type fileCredentials struct {
	file string

	mutex  sync.Mutex
	text   []byte
	parsed *auth.Credentials
}

// Token fetches a token. The cache in front of it asks only when the last one is about to expire.
func (f *fileCredentials) Token(ctx context.Context) (*auth.Token, error) {
	current, err := f.current()
	if err != nil {
		return nil, err
	}
	token, err := current.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch a token: %w", err)
	}
	return token, nil
}

// current reads the file. One that is missing or half written leaves what it held before.
func (f *fileCredentials) current() (*auth.Credentials, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	text, err := os.ReadFile(f.file)
	if err == nil && !bytes.Equal(text, f.text) {
		var parsed *auth.Credentials
		if parsed, err = parseCredentials(text); err == nil {
			f.text, f.parsed = text, parsed
		}
	}
	if f.parsed == nil {
		return nil, fmt.Errorf("pubsub.credentials_file: %w", err)
	}
	return f.parsed, nil
}
