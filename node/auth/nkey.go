package auth

import (
	"encoding/base64"

	"github.com/nats-io/nkeys"
)

// signed reports whether sig is the signature of the nonce by the holder of a public key. Without a nonce nothing is.
func signed(key, nonce, sig string) bool {
	if nonce == "" || sig == "" {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		if raw, err = base64.StdEncoding.DecodeString(sig); err != nil {
			return false
		}
	}
	pair, err := nkeys.FromPublicKey(key)
	return err == nil && pair.Verify([]byte(nonce), raw) == nil
}

// IsUserKey reports whether text is the public key of a user.
func IsUserKey(text string) bool { return nkeys.IsValidPublicUserKey(text) }
