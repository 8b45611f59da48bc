package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/node/config"
)

func testLog(t *testing.T, change func(*config.Config)) (*slog.Logger, *logger, string) {
	t.Helper()
	c := config.Default()
	c.LogFile = filepath.Join(t.TempDir(), "weir.log")
	change(&c)
	l, err := newLogger(&c)
	if err != nil {
		t.Fatal(err)
	}
	return slog.New(l), l, c.LogFile
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLinesHaveTheKnownForm(t *testing.T) {
	log, _, file := testLog(t, func(c *config.Config) { c.Debug, c.Trace = true, true })
	log.Info("Server is ready")
	log.Warn("careful", "n", 1)
	log.With("a", 2).WithGroup("g").Error("bad", "b", 3)
	log.Debug("detail")
	log.Log(nilContext, slog.LevelDebug-4, "<<- [PING]")
	log.Log(nilContext, levelFatal, "end")
	lines := strings.Split(strings.TrimSpace(content(t, file)), "\n")
	stamp := `^\[\d+\] \d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} `
	for i, want := range []string{
		`\[INF\] Server is ready$`, `\[WRN\] careful n=1$`, `\[ERR\] bad a=2 g\.b=3$`, `\[DBG\] detail$`, `\[TRC\] <<- \[PING\]$`, `\[FTL\] end$`,
	} {
		if i >= len(lines) || !regexp.MustCompile(stamp+want).MatchString(lines[i]) {
			t.Fatalf("line %d of %q is not %s", i, lines, want)
		}
	}
}

func TestLevelsAreIndependent(t *testing.T) {
	log, _, file := testLog(t, func(c *config.Config) { c.Trace, c.LogTime = true, false })
	log.Debug("detail")
	log.Log(nilContext, slog.LevelDebug-4, "traced")
	got := content(t, file)
	if strings.Contains(got, "detail") || !regexp.MustCompile(`^\[\d+\] \[TRC\] traced\n$`).MatchString(got) {
		t.Errorf("got %q", got)
	}
}

func TestReopenFollowsAMovedFile(t *testing.T) {
	log, l, file := testLog(t, func(*config.Config) {})
	log.Info("one")
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	log.Info("two")
	if err := l.reopen(); err != nil {
		t.Fatal(err)
	}
	log.Info("three")
	if old := content(t, file+".old"); !strings.Contains(old, "two") {
		t.Errorf("old file holds %q", old)
	}
	if now := content(t, file); !strings.Contains(now, "three") || strings.Contains(now, "two") {
		t.Errorf("new file holds %q", now)
	}
}

func TestFullFileIsRotatedAndOldOnesGo(t *testing.T) {
	log, _, file := testLog(t, func(c *config.Config) { c.LogSizeLimitBytes, c.LogFilesMax = 100, 3 })
	for range 50 {
		log.Info("a line that fills the file")
	}
	names, err := filepath.Glob(file + "*")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("there are %d files, want 3: %q", len(names), names)
	}
	if info, err := os.Stat(file); err != nil || info.Size() > 200 || info.Mode().Perm() != logFileMode {
		t.Errorf("current file: %v, %v", info, err)
	}
}
