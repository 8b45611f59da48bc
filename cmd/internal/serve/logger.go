package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/node/config"
)

// levelFatal is above those of slog. Everything below slog.LevelDebug is a trace.
const levelFatal = slog.LevelError + 4

// logFileMode is the permission of log files: they name users and addresses.
const logFileMode = 0o640

// logger writes lines as operators know them:
//
//	[pid] 2026/11/29 13:36:47.477402 [INF] text
//
// It is a slog.Handler; attributes follow the text as name=value.
type logger struct {
	*sink
	attrs string
	group string
}

// sink is where the lines of all loggers of a process go.
type sink struct {
	prefix string
	debug  atomic.Bool
	trace  atomic.Bool

	mu        sync.Mutex // guards the rest
	withTime  bool
	utc       bool
	file      string // "" for standard error
	limit     int64
	filesMax  int
	out       io.Writer
	opened    *os.File
	written   int64
	line      []byte
	complaint error // the last failure to write or rotate, shown when the file is reopened
}

func newLogger(c *config.Config) (*logger, error) {
	s := &sink{prefix: fmt.Sprintf("[%d] ", os.Getpid()), out: os.Stderr}
	if err := s.reload(c); err != nil {
		return nil, err
	}
	return &logger{sink: s}, nil
}

// reload takes what the configuration says of the log. After an error nothing has changed.
func (s *sink) reload(c *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != c.LogFile {
		old, before := s.opened, s.file
		s.file, s.opened, s.out = c.LogFile, nil, os.Stderr
		if s.file != "" {
			if err := s.open(); err != nil {
				s.file, s.opened = before, old
				if old != nil {
					s.out = old
				}
				return fmt.Errorf("error opening logfile: %w", err)
			}
		}
		if old != nil {
			s.complaint = old.Close()
		}
	}
	s.withTime, s.utc, s.limit, s.filesMax = c.LogTime, c.LogTimeUTC, c.LogSizeLimitBytes, c.LogFilesMax
	s.debug.Store(c.Debug)
	s.trace.Store(c.Trace)
	return nil
}

func (s *sink) open() error {
	f, err := os.OpenFile(s.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, logFileMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.opened, s.out, s.written = f, f, info.Size()
	return nil
}

// reopen opens the log file anew, after somebody has moved it.
func (s *sink) reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return nil
	}
	old, complaint := s.opened, s.complaint
	s.complaint = nil
	if err := s.open(); err != nil {
		return err
	}
	if old != nil {
		if err := old.Close(); err != nil {
			return err
		}
	}
	return complaint
}

// Enabled implements slog.Handler. Debug lines are not shown when only tracing is on.
func (s *sink) Enabled(_ context.Context, level slog.Level) bool {
	switch {
	case level < slog.LevelDebug:
		return s.trace.Load()
	case level < slog.LevelInfo:
		return s.debug.Load()
	}
	return true
}

// Handle implements slog.Handler.
func (l *logger) Handle(_ context.Context, record slog.Record) error {
	var attrs strings.Builder
	attrs.WriteString(l.attrs)
	record.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&attrs, " %s%s=%v", l.group, a.Key, a.Value)
		return true
	})
	return l.write(record.Time, label(record.Level), record.Message+attrs.String())
}

// WithAttrs implements slog.Handler.
func (l *logger) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *l
	for _, a := range attrs {
		n.attrs += fmt.Sprintf(" %s%s=%v", l.group, a.Key, a.Value)
	}
	return &n
}

// WithGroup implements slog.Handler.
func (l *logger) WithGroup(name string) slog.Handler {
	n := *l
	n.group += name + "."
	return &n
}

func label(level slog.Level) string {
	switch {
	case level < slog.LevelDebug:
		return "[TRC] "
	case level < slog.LevelInfo:
		return "[DBG] "
	case level < slog.LevelWarn:
		return "[INF] "
	case level < slog.LevelError:
		return "[WRN] "
	case level < levelFatal:
		return "[ERR] "
	}
	return "[FTL] "
}

func (s *sink) write(at time.Time, label, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.utc {
		at = at.UTC()
	}
	s.line = append(s.line[:0], s.prefix...)
	if s.withTime {
		s.line = at.AppendFormat(s.line, "2006/01/02 15:04:05.000000 ")
	}
	s.line = append(append(s.line, label...), text...)
	s.line = append(s.line, '\n')
	n, err := s.out.Write(s.line)
	s.written += int64(n)
	if err == nil && s.opened != nil && s.limit > 0 && s.written > s.limit {
		err = s.rotate(time.Now())
	}
	if err != nil {
		s.complaint = err
	}
	return err
}

// rotate moves the full file aside and starts another one under its name.
func (s *sink) rotate(now time.Time) error {
	aside := s.file + now.Format(".2006.01.02.15.04.05.000000000")
	if err := os.Rename(s.file, aside); err != nil {
		return err
	}
	old := s.opened
	if err := s.open(); err != nil {
		return err
	}
	if err := old.Close(); err != nil {
		return err
	}
	if s.filesMax <= 0 {
		return nil
	}
	names, err := filepath.Glob(s.file + ".[0-9][0-9][0-9][0-9].*")
	if err != nil {
		return err
	}
	slices.Sort(names)
	for len(names) > s.filesMax-1 {
		if err := os.Remove(names[0]); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}
