package access

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

const (
	passwordScheme = "pbkdf2-sha256" //nolint:gosec // the name of a scheme
	tokenScheme    = "sha256"
	// tokenPrefix makes a token recognisable to those who scan for leaked secrets.
	tokenPrefix = "pht_"
	tokenBytes  = 32

	// iterations is what a guess at a password costs. A users file may have more, up to mostIterations, and no less.
	iterations     = 600_000
	mostIterations = 10_000_000
	saltBytes      = 16
	// shortestPassword is in bytes.
	shortestPassword = 12
)

// NewToken makes a random secret for a program or a browser, and what a users file has of it. The file's part does
// not help to find the secret.
func NewToken() (token, stored string) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	sum := sha256.Sum256([]byte(token))
	return token, tokenScheme + "$" + hex.EncodeToString(sum[:])
}

// HashPassword makes what a users file has of a password that somebody has thought of. Prefer [NewToken] for
// programs.
func HashPassword(password string) (stored string, err error) {
	if len(password) < shortestPassword {
		return "", fmt.Errorf("a password must have at least %d characters", shortestPassword)
	}
	return hashPassword(password, iterations, derivePBKDF2)
}

func hashPassword(password string, iterations int, derive derive) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	key, err := derive(password, salt, iterations)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return strings.Join([]string{passwordScheme, strconv.Itoa(iterations), encode(salt), encode(key)}, "$"), nil
}

// stored is what a users file has of a secret: the hash of a password, or that of a token.
type stored struct {
	text       string
	token      []byte
	iterations int
	salt, key  []byte
}

// isPassword tells whether this is the hash of a password.
func (s stored) isPassword() bool { return s.key != nil }

// parseStored reads what [NewToken] or [HashPassword] made. Its errors do not quote the hash.
func parseStored(text string, atLeast int) (stored, error) {
	scheme, rest, _ := strings.Cut(text, "$")
	switch scheme {
	case tokenScheme:
		sum, err := hex.DecodeString(rest)
		if err != nil || len(sum) != sha256.Size {
			return stored{}, fmt.Errorf("secret: after %s$ must come 64 hexadecimal digits", tokenScheme)
		}
		return stored{text: text, token: sum}, nil
	case passwordScheme:
		return parsePassword(text, rest, atLeast)
	default:
		return stored{}, fmt.Errorf("secret: must begin with %s$ or %s$; never write the secret itself into the file",
			passwordScheme, tokenScheme)
	}
}

func parsePassword(text, rest string, atLeast int) (stored, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 3 {
		return stored{}, fmt.Errorf("secret: must be %s$ITERATIONS$SALT$HASH", passwordScheme)
	}
	count, err := strconv.Atoi(parts[0])
	if err != nil || count < atLeast || count > mostIterations {
		return stored{}, fmt.Errorf("secret: needs between %d and %d iterations", atLeast, mostIterations)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[1])
	if err != nil || len(salt) < saltBytes {
		return stored{}, fmt.Errorf("secret: the salt must be at least %d bytes in base64", saltBytes)
	}
	key, err := base64.RawStdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != sha256.Size {
		return stored{}, fmt.Errorf("secret: the hash must be %d bytes in base64", sha256.Size)
	}
	return stored{text: text, iterations: count, salt: salt, key: key}, nil
}

// unknownPassword is compared with where there is no password, so that it takes as long.
func unknownPassword(iterations int) stored {
	return stored{iterations: iterations, salt: make([]byte, saltBytes), key: make([]byte, sha256.Size)}
}

// derive makes the hash of a password. A test counts the iterations with one of its own.
type derive func(password string, salt []byte, iterations int) ([]byte, error)

func derivePBKDF2(password string, salt []byte, iterations int) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("hash a password: %w", err)
	}
	return key, nil
}

// matchesPassword compares a password. All comparisons of one file do the same work, so that time says nothing about
// the iterations of one user, or whether there is such a user.
func (s stored) matchesPassword(password string, work int, derive derive) bool {
	key, err := derive(password, s.salt, s.iterations)
	if rest := work - s.iterations; rest > 0 {
		_, _ = derive(password, s.salt, rest)
	}
	return subtle.ConstantTimeCompare(key, s.key) == 1 && err == nil
}

// tokenSum is the hash of a token, or nil for what no token looks like. So the quick hash is never used for a secret
// that somebody could guess.
func tokenSum(token string) []byte {
	encoded, ok := strings.CutPrefix(token, tokenPrefix)
	if random, err := base64.RawURLEncoding.DecodeString(encoded); !ok || err != nil || len(random) != tokenBytes {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// matchesToken compares the hash of a token.
func (s stored) matchesToken(sum []byte) bool {
	return len(sum) == sha256.Size && len(s.token) == sha256.Size && subtle.ConstantTimeCompare(sum, s.token) == 1
}

// sameSecret compares two texts in a time that says nothing about either.
func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
