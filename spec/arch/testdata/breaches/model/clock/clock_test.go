package clock

import (
	"os"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	os.Getenv("tests may read the environment")
	time.Sleep(1)
}
