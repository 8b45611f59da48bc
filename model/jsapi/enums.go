package jsapi

import (
	"fmt"
	"slices"
	"strings"
)

// enumNames are the JSON strings of an enumeration; the index is the value.
type enumNames []string

func (n enumNames) marshal(value uint8) ([]byte, error) {
	if int(value) >= len(n) {
		return nil, fmt.Errorf("can not marshal %d", value)
	}
	return []byte(`"` + n[value] + `"`), nil
}

// parse finds the value of a JSON string. The error text is part of the API: it follows "invalid JSON: ".
func (n enumNames) parse(data []byte) (uint8, error) {
	if len(data) >= 2 && data[0] == '"' && data[len(data)-1] == '"' {
		if i := slices.Index(n, string(data[1:len(data)-1])); i >= 0 {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("can not unmarshal %q", data)
}

func (n enumNames) text(value uint8) string {
	if int(value) >= len(n) {
		return fmt.Sprintf("unknown(%d)", value)
	}
	return n[value]
}

// RetentionPolicy says what removes messages besides limits.
type RetentionPolicy uint8

// The retention policies.
const (
	LimitsRetention RetentionPolicy = iota
	InterestRetention
	WorkQueueRetention
)

var retentionNames = enumNames{"limits", "interest", "workqueue"}

// String returns the JSON name.
func (p RetentionPolicy) String() string { return retentionNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p RetentionPolicy) MarshalJSON() ([]byte, error) { return retentionNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names only.
func (p *RetentionPolicy) UnmarshalJSON(data []byte) error {
	v, err := retentionNames.parse(data)
	*p = RetentionPolicy(v)
	return err
}

// DiscardPolicy says what happens to a publish that would exceed a limit.
type DiscardPolicy uint8

// The discard policies: make room by removing the oldest messages, or refuse the new one.
const (
	DiscardOld DiscardPolicy = iota
	DiscardNew
)

var discardNames = enumNames{"old", "new"}

// String returns the JSON name.
func (p DiscardPolicy) String() string { return discardNames.text(uint8(p)) }

// MarshalJSON returns the quoted name.
func (p DiscardPolicy) MarshalJSON() ([]byte, error) { return discardNames.marshal(uint8(p)) }

// UnmarshalJSON accepts the known names in any letter case.
func (p *DiscardPolicy) UnmarshalJSON(data []byte) error {
	v, err := discardNames.parse([]byte(strings.ToLower(string(data))))
	if err != nil {
		return fmt.Errorf("can not unmarshal %q", data)
	}
	*p = DiscardPolicy(v)
	return nil
}

// StorageType says where messages live. The zero value is the default.
type StorageType uint8

// The storage types.
const (
	FileStorage StorageType = iota
	MemoryStorage
)

var storageNames = enumNames{"file", "memory"}

// String returns the JSON name.
func (s StorageType) String() string { return storageNames.text(uint8(s)) }

// MarshalJSON returns the quoted name.
func (s StorageType) MarshalJSON() ([]byte, error) { return storageNames.marshal(uint8(s)) }

// UnmarshalJSON accepts the known names only.
func (s *StorageType) UnmarshalJSON(data []byte) error {
	v, err := storageNames.parse(data)
	*s = StorageType(v)
	return err
}

// Compression is the compression of message blocks on disk.
type Compression uint8

// The compression algorithms.
const (
	NoCompression Compression = iota
	S2Compression
)

var compressionNames = enumNames{"none", "s2"}

// String returns the JSON name.
func (c Compression) String() string { return compressionNames.text(uint8(c)) }

// MarshalJSON returns the quoted name.
func (c Compression) MarshalJSON() ([]byte, error) { return compressionNames.marshal(uint8(c)) }

// UnmarshalJSON accepts the known names only.
func (c *Compression) UnmarshalJSON(data []byte) error {
	v, err := compressionNames.parse(data)
	if err != nil {
		return fmt.Errorf("unknown compression algorithm")
	}
	*c = Compression(v)
	return nil
}

// PersistMode says when a publish is acknowledged relative to its durability.
type PersistMode uint8

// The persist modes. Async is a feature of later versions and is refused by Normalize.
const (
	DefaultPersist PersistMode = iota
	AsyncPersist
)

var persistNames = enumNames{"default", "async"}

// String returns the JSON name.
func (m PersistMode) String() string { return persistNames.text(uint8(m)) }

// MarshalJSON returns the quoted name.
func (m PersistMode) MarshalJSON() ([]byte, error) { return persistNames.marshal(uint8(m)) }

// UnmarshalJSON accepts the known names and the empty string.
func (m *PersistMode) UnmarshalJSON(data []byte) error {
	if string(data) == `""` {
		*m = DefaultPersist
		return nil
	}
	v, err := persistNames.parse(data)
	*m = PersistMode(v)
	return err
}
