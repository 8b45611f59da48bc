// Package clock breaks the rules of determinism.
package clock

import (
	"fmt"
	"maps"
	"math/rand"
	"os" //det:ok shows that an excuse works
	"reflect"
	"slices"
	"time"
)

// TODO: this comment admits too much.
var pid = os.Getpid

func Bare() time.Time { return time.Now() }

type Exposed struct{ c chan int }

// Documented is a group of constants that needs no more comments.
const (
	DocumentedA = 1
	DocumentedB = 2
)

var Loose = rand.Int() //det:ok

// Method is documented; its receiver is exported.
func (e Exposed) Method(a, b, c, d, f int) {
	go e.Method(a, b, c, d, f)
	select {
	case e.c <- a:
	case <-e.c:
	}
	println(a)
	fmt.Println(a)
	fmt.Sprint(reflect.ValueOf(a).MapKeys())
}

// Walk ranges over maps in all ways.
func Walk(m map[string]float64) float64 {
	sum := 0.0
	for _, v := range m {
		sum += v
	}
	for range m { // order-free: counts only
	}
	// order-free: the comment above the line counts too
	for range m {
	}
	for range m { // order-free:
	}
	for range maps.Keys(m) {
	}
	for range slices.Sorted(maps.Keys(m)) {
	}
	const fixed = 1.5 * 2
	return sum*2 + fixed
}

// Fine carries an excuse for nothing.
func Fine(now int64) int64 { return now + int64(time.Second) } //det:ok not needed
