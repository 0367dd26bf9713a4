package skillbox

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const testKey = "skb_0123456789abcdef"

// scripted is a server that answers the n-th request by the n-th step, and later ones by the last.
func scripted(t *testing.T, steps ...http.HandlerFunc) (*Client, *[]*http.Request) {
	t.Helper()
	var mutex sync.Mutex
	var seen []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		seen = append(seen, r)
		step := steps[min(len(seen), len(steps))-1]
		mutex.Unlock()
		step(w, r)
	}))
	t.Cleanup(server.Close)
	client := New(server.URL, testKey)
	client.pause = time.Millisecond
	return client, &seen
}

func answers(status int, headers map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// breaks closes the connection, after some bytes of an answer if there are any.
func breaks(some string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if some != "" {
			w.Header().Set("Content-Length", "1000000")
			io.WriteString(w, some)
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}

var succeeded = answers(200, nil, `{"execution_id":"e1","status":"success","output":{"n":1.50}}`)

func TestRetriesTemporaryFailuresWithTheSameIdempotencyKey(t *testing.T) {
	for name, failure := range map[string]http.HandlerFunc{
		"429": answers(429, nil, ""), "502": answers(502, nil, "<html>"), "503": answers(503, nil, ""),
		"504": answers(504, nil, ""), "no answer": breaks(""), "half an answer": breaks(`{"execution_id":"e0","status":"run`),
	} {
		client, seen := scripted(t, failure, failure, failure, succeeded)
		result, err := client.RunCode(context.Background(), Python, "1", nil)
		if err != nil || string(result.Output) != `{"n":1.50}` || result.Status != Success {
			t.Fatalf("%s: %+v, %v", name, result, err)
		}
		key := (*seen)[0].Header.Get("Idempotency-Key")
		for _, request := range *seen {
			if request.Header.Get("Idempotency-Key") != key || len(key) != 32 {
				t.Errorf("%s: another key in a retry: %q", name, request.Header.Get("Idempotency-Key"))
			}
		}
	}
	client, seen := scripted(t, succeeded)
	for i := 0; i < 2; i++ {
		if _, err := client.RunCode(context.Background(), Python, "1", nil); err != nil {
			t.Fatal(err)
		}
	}
	if (*seen)[0].Header.Get("Idempotency-Key") == (*seen)[1].Header.Get("Idempotency-Key") {
		t.Error("two calls have one key")
	}
}

func TestGivesUpAfterFourTriesAndNeverRetriesOtherErrors(t *testing.T) {
	for status, tries := range map[int]int{429: 4, 503: 4, 400: 1, 401: 1, 409: 1, 422: 1, 500: 1, 507: 1, 307: 1} {
		client, seen := scripted(t, answers(status, map[string]string{"Location": "http://127.0.0.1:1/"}, ""))
		_, err := client.Get(context.Background(), "e1")
		var failed *Error
		if !errors.As(err, &failed) || failed.Status != status || len(*seen) != tries {
			t.Errorf("%d: %v after %d tries", status, err, len(*seen))
		}
	}
	client, seen := scripted(t, breaks(""))
	if _, err := client.Get(context.Background(), "e1"); err == nil || len(*seen) < 4 {
		t.Errorf("%v after %d tries", err, len(*seen))
	}
	client, seen = scripted(t, answers(200, nil, "<html>"))
	if _, err := client.Get(context.Background(), "e1"); err == nil || len(*seen) != 1 {
		t.Errorf("%v after %d tries", err, len(*seen))
	}
}

func TestWaitsAsLongAsTheServerAsksAndTheContextAllows(t *testing.T) {
	busy := answers(503, map[string]string{"Retry-After": "1"}, "")
	client, _ := scripted(t, busy, succeeded)
	started := time.Now()
	if _, err := client.Get(context.Background(), "e1"); err != nil || time.Since(started) < time.Second {
		t.Errorf("%v after %v", err, time.Since(started))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	client, seen := scripted(t, busy)
	_, err := client.Get(ctx, "e1")
	var failed *Error
	if !errors.As(err, &failed) || failed.RetryAfter != time.Second || len(*seen) != 1 {
		t.Errorf("%v after %d tries", err, len(*seen))
	}
	client, seen = scripted(t, answers(429, map[string]string{"Retry-After": "3600"}, ""))
	if _, err := client.Get(context.Background(), "e1"); err == nil || len(*seen) != 1 {
		t.Errorf("%v after %d tries", err, len(*seen))
	}
}

func TestSlowAttemptTimesOut(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	client, seen := scripted(t, func(http.ResponseWriter, *http.Request) { <-release })
	client.timeout = 300 * time.Millisecond
	_, err := client.Get(context.Background(), "e1")
	if !errors.Is(err, context.DeadlineExceeded) || len(*seen) != triesMax {
		t.Errorf("%v after %d tries", err, len(*seen))
	}
	if _, err := client.OpenBlob(context.Background(), "b1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.Get(ctx, "e1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := client.OpenBlob(ctx, "b1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestErrorsCarryProblem(t *testing.T) {
	body := `{"code":"invalid","detail":"input: wrong","status":400,"request_id":"r1","retryable":false,
		"errors":[{"pointer":"/n","message":"no number"}]}`
	client, _ := scripted(t, answers(400, map[string]string{"Content-Type": "application/problem+json"}, body))
	_, err := client.ListSkills(context.Background())
	var failed *Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if failed.Code != CodeInvalid || failed.Message != "input: wrong" || failed.RequestID != "r1" || failed.Faults[0].Pointer != "/n" {
		t.Errorf("%+v", failed)
	}
	if text := err.Error(); text != "skillbox: input: wrong (status 400, code invalid, request r1)" {
		t.Error(text)
	}
}

func TestKeyIsNeverPrinted(t *testing.T) {
	problem := map[string]string{"Content-Type": "application/problem+json"}
	echo := func(w http.ResponseWriter, r *http.Request) {
		answers(403, problem, `{"code":"forbidden","detail":"`+r.Header.Get("Authorization")+`"}`)(w, r)
	}
	echoing, _ := scripted(t, echo)
	unreachable := New("http://127.0.0.1:1", testKey, WithTenant("default"))
	unreachable.pause = time.Millisecond
	values := []any{echoing, *echoing, unreachable, New("http://x/"+testKey+"?"+testKey, testKey+" "), New("http://u:"+testKey+"@x", testKey)}
	for _, value := range values {
		client, isPointer := value.(*Client)
		if !isPointer {
			continue
		}
		_, err := client.Get(context.Background(), "e1")
		values = append(values, err)
		values = append(values, client.Health(context.Background()))
	}
	for _, value := range values {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, testKey[4:]) {
				t.Errorf("%s of %T prints the key: %s", format, value, text)
			}
		}
		if text, err := json.Marshal(value); err == nil && bytes.Contains(text, []byte(testKey[4:])) {
			t.Errorf("JSON of %T has the key: %s", value, text)
		}
	}
}

func TestRejectsArgumentsThatCannotWork(t *testing.T) {
	for _, client := range []*Client{
		New("", testKey), New("127.0.0.1:8080", testKey), New("ftp://x", testKey), New("http://u@x", testKey), New("http://x?a=b", testKey),
		New("http://x", ""), New("http://x", "a b"), New("http://x", "a\n"), New("http://x", testKey, WithTenant("a\r\nb")),
	} {
		if err := client.Health(context.Background()); err == nil || !strings.HasPrefix(err.Error(), "skillbox: ") {
			t.Errorf("%v: %v", client, err)
		}
	}
}

func TestSendsRequestAsDocumented(t *testing.T) {
	var body bytes.Buffer
	client, seen := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(&body, r.Body)
		succeeded(w, r)
	})
	client.tenant = "default"
	empty := ""
	request := RunRequest{
		Skill: "s", Input: json.RawMessage(`{"a":"<&>","n":1.50}`), Files: map[string][]byte{"a/": nil, "b": []byte("hi")}, Stdin: &empty,
		Args: []string{"x"}, IdempotencyKey: "order-1",
	}
	if _, err := client.Run(context.Background(), request); err != nil {
		t.Fatal(err)
	}
	expected := `{"skill":"s","input":{"a":"<&>","n":1.50},"args":["x"],"files":{"a/":"","b":"aGk="},"stdin":""}`
	if sent := strings.TrimSpace(body.String()); sent != expected {
		t.Error(sent)
	}
	header := (*seen)[0].Header
	if header.Get("Idempotency-Key") != "order-1" || header.Get("X-Skillbox-Tenant") != "default" || header.Get("Authorization") != "Bearer "+testKey {
		t.Error(header)
	}
	if path := (&Client{}).base + execution("a/../b?", "/files/"+escapePath("c d/%/é")); path != "/v1/executions/a%2F..%2Fb%3F/files/c%20d/%25/%C3%A9" {
		t.Error(path)
	}
}

func TestHealthNamesFailedParts(t *testing.T) {
	client, _ := scripted(t, answers(503, nil, `{"ready":false,"checks":[{"name":"store","ok":true},{"name":"sandbox","ok":false}]}`))
	var failed *Error
	if err := client.Health(context.Background()); !errors.As(err, &failed) || failed.Message != "not ready: sandbox" {
		t.Error(err)
	}
	client, _ = scripted(t, answers(200, nil, "<html>"))
	if err := client.Health(context.Background()); err == nil {
		t.Error("another server is healthy")
	}
	client, _ = scripted(t, answers(200, nil, `{"ready":true,"checks":[]}`))
	if err := client.Health(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestListsAllPages(t *testing.T) {
	client, seen := scripted(t,
		answers(200, nil, `{"items":[{"name":"a"},{"name":"b"}],"next_page_token":"p2"}`), answers(200, nil, `{"items":[{"name":"c"}],"next_page_token":null}`))
	skills, err := client.ListSkills(context.Background())
	if err != nil || len(skills) != 3 || (*seen)[1].URL.RawQuery != "limit=200&page_token=p2" {
		t.Error(skills, err, (*seen)[1].URL)
	}
}

const (
	statusEvent = "id: 0-0-0-running\nevent: status\ndata: {\"execution_id\":\"e1\",\"status\":\"running\"}\n\n"
	firstOutput = ": comment\n\nid: 2-0-0-running\r\nevent: stdout\r\ndata: {\"text\":\"a\\n\"}\r\n\r\n"
	laterOutput = "id: 4-0-0-running\nevent: stdout\ndata: {\"text\":\ndata:\"b\\n\"}\n\nevent: later\ndata: x\n\n"
	ended       = "id: 4-0-0-success\nevent: result\ndata: {\"execution_id\":\"e1\",\"status\":\"success\"}\n\n" +
		"id: 4-0-0-end\nevent: end\ndata: {\"status\":\"success\",\"reason\":\"finished\"}\n\n"
	shutdown = "id: 2-0-0-end\nevent: end\ndata: {\"status\":\"running\",\"reason\":\"shutdown\"}\n\n"
)

func printed(t *testing.T, stream *EventStream, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text strings.Builder
	for stream.Next() {
		if event := stream.Event(); event.Output != nil {
			text.WriteString(event.Output.Text)
		}
	}
	if stream.Err() != nil {
		text.WriteString(stream.Err().Error())
	}
	return text.String()
}

func TestStreamResumesAfterTheLastEvent(t *testing.T) {
	for name, cut := range map[string]http.HandlerFunc{
		"lost connection": breaks(statusEvent + firstOutput + laterOutput[:30]), "shutdown": answers(200, nil, statusEvent+firstOutput+shutdown),
		"early end": answers(200, nil, statusEvent+firstOutput),
	} {
		client, seen := scripted(t, breaks(""), cut, answers(503, nil, ""), answers(200, nil, laterOutput+ended))
		stream, err := client.Stream(context.Background(), RunRequest{Code: "1"})
		if text := printed(t, stream, err); text != "a\nb\n" || stream.Result().Status != Success || stream.ExecutionID() != "e1" {
			t.Errorf("%s: %q", name, text)
		}
		requests := *seen
		resumed := requests[len(requests)-1]
		if resumed.URL.Path != "/v1/executions/e1/events" || resumed.Header.Get("Last-Event-ID") != "2-0-0-running" {
			t.Errorf("%s: %s after %q", name, resumed.URL, resumed.Header.Get("Last-Event-ID"))
		}
		if requests[0].Header.Get("Idempotency-Key") == "" || requests[0].Header.Get("Idempotency-Key") != requests[1].Header.Get("Idempotency-Key") {
			t.Errorf("%s: the run was started under two keys", name)
		}
	}
}

func TestStreamEnds(t *testing.T) {
	client, _ := scripted(t, answers(204, nil, ""))
	stream, err := client.Events(context.Background(), "e1", "4-0-0-end")
	if text := printed(t, stream, err); text != "" {
		t.Error(text)
	}
	client, seen := scripted(t, answers(200, nil, statusEvent))
	stream, err = client.Events(context.Background(), "e1", "")
	if text := printed(t, stream, err); !strings.Contains(text, "unexpected EOF") || len(*seen) > 2*triesMax {
		t.Error(text, len(*seen))
	}
	client, _ = scripted(t, answers(404, nil, ""))
	if _, err := client.Events(context.Background(), "e1", ""); err == nil {
		t.Error("a missing execution has events")
	}
}

// entry of a tar that a test makes.
type entry struct {
	tar.Header
	content string
}

func tarGz(t *testing.T, entries []entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	writer := tar.NewWriter(zipped)
	for _, entry := range entries {
		entry.Mode = 0o777
		if entry.Typeflag == 0 {
			entry.Typeflag = tar.TypeReg
		}
		if entry.Typeflag == tar.TypeReg {
			entry.Size = int64(len(entry.content))
		}
		if err := writer.WriteHeader(&entry.Header); err != nil {
			t.Fatal(entry.Name, err)
		}
		if entry.Typeflag == tar.TypeReg {
			io.WriteString(writer, entry.content)
		}
	}
	writer.Close()
	zipped.Close()
	return packed.Bytes()
}

// listed is the result that names each file of the archive, so that the archive's own form is what is refused.
func listed(entries []entry) []File {
	var files []File
	for _, entry := range entries {
		digest := sha256.Sum256([]byte(entry.content))
		files = append(files, File{Path: strings.TrimSuffix(entry.Name, "/"), SHA256: "sha256:" + hex.EncodeToString(digest[:])})
	}
	return files
}

func file(name string) entry { return entry{Header: tar.Header{Name: name}, content: "hostile"} }

func special(name string, kind byte, target string) entry {
	return entry{Header: tar.Header{Name: name, Typeflag: kind, Linkname: target}}
}

// hostileArchives returns 200 archives, each with one thing that must be refused, at another place among good files.
func hostileArchives(outside string) [][]entry {
	deep := strings.Repeat("d/", archiveDepth+1) + "f"
	bad := [][]entry{
		{file("../x")}, {file("a/../../x")}, {file("a/../x")}, {file("..")}, {file("a/..")}, {file("./x")}, {file(".")}, {file("a/./x")},
		{file(outside + "/x")}, {file("/x")}, {file("//x")}, {file("a//x")}, {file("a/b/../../../../x")}, {file(deep)},
		{file(strings.Repeat("n", archivePathMax+1))},
		{special("../", tar.TypeDir, "")}, {special(outside+"/d/", tar.TypeDir, "")}, {special("a/../../d/", tar.TypeDir, "")}, {special("./", tar.TypeDir, "")},
		{special("l", tar.TypeSymlink, outside)}, {special("l", tar.TypeSymlink, outside), file("l/x")}, {special("l", tar.TypeSymlink, "..")},
		{special("l", tar.TypeSymlink, "."), file("l/../../x")}, {special("a/l", tar.TypeSymlink, "../.."), file("a/l/x")},
		{special("h", tar.TypeLink, outside+"/secret")}, {special("h", tar.TypeLink, "../secret"), file("h")}, {special("h", tar.TypeLink, "good")},
		{special("c", tar.TypeChar, "")}, {special("b", tar.TypeBlock, "")}, {special("p", tar.TypeFifo, "")}, {special("t", tar.TypeCont, "")},
		{file("x"), file("x")}, {file("x"), special("x/", tar.TypeDir, "")}, {special("x/", tar.TypeDir, ""), file("x")}, {file("x"), file("x/y")},
		{file("x/y"), file("x")}, {special("x/", tar.TypeDir, ""), special("x/", tar.TypeDir, "")}, {file("x"), file("good/last")},
		{{Header: tar.Header{Name: "big"}, content: strings.Repeat("0", 70_000)}}, {},
	}
	for i := 0; i < 101; i++ {
		bad[len(bad)-1] = append(bad[len(bad)-1], file(fmt.Sprintf("many/%d", i)))
	}
	var archives [][]entry
	for round := 0; len(archives) < 200; round++ {
		for _, entries := range bad {
			var archive []entry
			for i := 0; i < round; i++ {
				archive = append(archive, file(fmt.Sprintf("good/%d", i)))
			}
			archive = append(archive, entries...)
			archives = append(archives, append(archive, file("good/last")))
		}
	}
	return archives[:200]
}

func TestTwoHundredHostileArchivesWriteNothing(t *testing.T) {
	root := t.TempDir()
	outside, dest := filepath.Join(root, "outside"), filepath.Join(root, "dest")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, entries := range hostileArchives(outside) {
		err := unpack(bytes.NewReader(tarGz(t, entries)), dest, newArchiveCheck(listed(entries), archiveLimits{files: 100, bytes: 64 << 10}))
		var refused *permanentError
		if !errors.As(err, &refused) {
			t.Errorf("archive %d: %v", i, err)
		}
		if found := tree(t, root); found != "outside outside/secret=secret" {
			t.Fatalf("archive %d wrote: %s", i, found)
		}
	}
}

// tree is all that lies in a folder, with its content.
func tree(t *testing.T, root string) string {
	t.Helper()
	var found []string
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			found = append(found, name+"="+string(content))
			return err
		}
		found = append(found, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, " ")
}

func TestDamagedAndUnexpectedArchivesWriteNothing(t *testing.T) {
	root := t.TempDir()
	good := []entry{file("a"), file("b")}
	packed := tarGz(t, good)
	for name, archive := range map[string][]byte{
		"cut": packed[:len(packed)-20], "no gzip": []byte("hostile"), "empty": nil, "changed": append(append([]byte{}, packed[:40]...), bytes.Repeat([]byte{7}, 40)...),
		"one more file": tarGz(t, append(good, file("c"))), "one file less": tarGz(t, good[:1]),
		"other content": tarGz(t, []entry{good[0], {Header: tar.Header{Name: "b"}, content: "other"}}),
	} {
		err := unpack(bytes.NewReader(archive), filepath.Join(root, "dest"), newArchiveCheck(listed(good), archiveLimits{files: 100, bytes: 64 << 10}))
		if err == nil || tree(t, root) != "" {
			t.Errorf("%s: %v, %s", name, err, tree(t, root))
		}
	}
}

func TestDownloadReplacesNoFileAndFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	dest, outside := filepath.Join(root, "dest"), filepath.Join(root, "outside")
	entries := []entry{file("a/first"), special("empty/", tar.TypeDir, ""), file("b/second"), file("third")}
	files := listed([]entry{entries[0], entries[2], entries[3]})
	get := func() error {
		return unpack(bytes.NewReader(tarGz(t, entries)), dest, newArchiveCheck(files, archiveLimits{files: 100, bytes: 64 << 10}))
	}
	for _, folder := range []string{dest, outside} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, place := range map[string]func() error{
		"a linked folder":  func() error { return os.Symlink(outside, filepath.Join(dest, "b")) },
		"a dangling link":  func() error { return os.Symlink(filepath.Join(outside, "new"), filepath.Join(dest, "third")) },
		"an existing file": func() error { return os.WriteFile(filepath.Join(dest, "third"), []byte("mine"), 0o644) },
		"a file as folder": func() error { return os.WriteFile(filepath.Join(dest, "b"), []byte("mine"), 0o644) },
	} {
		if err := place(); err != nil {
			t.Fatal(err)
		}
		before := tree(t, root)
		if err := get(); err == nil || tree(t, root) != before {
			t.Errorf("%s: %v, %s", name, err, tree(t, root))
		}
		os.Remove(filepath.Join(dest, "b"))
		os.Remove(filepath.Join(dest, "third"))
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	if found := tree(t, dest); found != "a a/first=hostile b b/second=hostile empty third=hostile" {
		t.Error(found)
	}
}

func TestDownloadOfABombIsBounded(t *testing.T) {
	entries := []entry{{Header: tar.Header{Name: "bomb"}, content: strings.Repeat("0", 1<<20)}}
	packed := tarGz(t, entries)
	client, _ := scripted(t, answers(200, nil, string(packed)))
	result := &RunResult{ExecutionID: "e1", FilesList: []string{"bomb"}, Files: listed(entries)}
	for _, limits := range []archiveLimits{{files: 1, bytes: 1000}, {files: 1, bytes: 100_000}, {files: 0, bytes: 10 << 20}} {
		client.archive = limits
		dest := filepath.Join(t.TempDir(), "dest")
		err := client.DownloadFiles(context.Background(), result, dest)
		var refused *permanentError
		if _, missing := os.Stat(dest); !errors.As(err, &refused) || missing == nil {
			t.Errorf("%+v: %v", limits, err)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	var calls int64
	client, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if atomic.AddInt64(&calls, 1)%3 == 0 {
			panic(http.ErrAbortHandler)
		}
		succeeded(w, r)
	})
	var group sync.WaitGroup
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := client.RunCode(context.Background(), Python, "1", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	for name, content := range files {
		part, err := writer.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, content)
	}
	writer.Close()
	return packed.Bytes()
}
