//go:build !linux

package host

import "time"

const canSleepUnseen = false

func sleepUnseen(time.Duration) {}
