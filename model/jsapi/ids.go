package jsapi

const (
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	eventIDBytes = 22
	nameBytes    = 8
)

// EventID makes the id of an advisory out of two random numbers: 22 characters.
func EventID(a, b uint64) string {
	id := make([]byte, 0, eventIDBytes)
	id = appendBase62(id, a, eventIDBytes/2)
	return string(appendBase62(id, b, eventIDBytes/2))
}

// ConsumerName makes the name of an ephemeral consumer out of a random number: 8 characters.
func ConsumerName(random uint64) string {
	return string(appendBase62(make([]byte, 0, nameBytes), random, nameBytes))
}

func appendBase62(dst []byte, random uint64, count int) []byte {
	for range count {
		dst = append(dst, base62[random%uint64(len(base62))])
		random /= uint64(len(base62))
	}
	return dst
}
