package host

import (
	"crypto/rand"
	"encoding/base64"
)

// nonceBytes is how many random bytes a client is asked to sign.
const nonceBytes = 11

// newNonce is what one client is asked to sign.
func newNonce() string {
	var random [nonceBytes]byte
	_, _ = rand.Read(random[:]) // which never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}
