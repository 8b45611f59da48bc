package jsapi

import (
	"math"
	"time"
)

// Time is an instant as unix nanoseconds. In JSON it is RFC3339 with nanoseconds in UTC; the value 0 stands for "no
// time" and is written as year 1, as the reference server does.
type Time int64

const zeroTimeText = "0001-01-01T00:00:00Z"

// TimeFrom converts t. Instants that int64 nanoseconds cannot express become the nearest one that it can, and year 1
// becomes 0.
func TimeFrom(t time.Time) Time {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return Time(t.UnixNano())
}

// AppendTime appends t in the JSON form without quotes.
func AppendTime(dst []byte, t Time) []byte {
	if t == 0 {
		return append(dst, zeroTimeText...)
	}
	return time.Unix(0, int64(t)).UTC().AppendFormat(dst, time.RFC3339Nano)
}

// String returns the JSON form without quotes.
func (t Time) String() string { return string(AppendTime(nil, t)) }

// MarshalJSON returns the quoted RFC3339 form.
func (t Time) MarshalJSON() ([]byte, error) {
	dst := append(make([]byte, 0, len(time.RFC3339Nano)+2), '"')
	return append(AppendTime(dst, t), '"'), nil
}

// UnmarshalJSON accepts RFC3339 with any offset. Null leaves the value unchanged.
func (t *Time) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var parsed time.Time
	if err := parsed.UnmarshalJSON(data); err != nil {
		return err
	}
	*t = TimeFrom(parsed)
	return nil
}
