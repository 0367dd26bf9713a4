package skillbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// realServer is a client of the server that the environment names; without one the test is skipped.
func realServer(t *testing.T, options ...Option) *Client {
	t.Helper()
	address, key := os.Getenv("SKILLBOX_SERVER_URL"), os.Getenv("SKILLBOX_API_KEY")
	if address == "" || key == "" {
		t.Skip("skipped: SKILLBOX_SERVER_URL and SKILLBOX_API_KEY name no server")
	}
	return New(address, key, options...)
}

const declaration = "---\nname: go-sdk\ndescription: Says what it gets\nmetadata:\n  version: 1.0.0\n---\n\nText.\n"

func TestPublishesRunsAndDeletesSkill(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	archive := filepath.Join(t.TempDir(), "skill.zip")
	program := "import json, os\nn = json.load(open('/sandbox/input.json'))['n']\nopen('/sandbox/out/output.json', 'w').write(json.dumps(n * 2))\n"
	content := zipped(t, map[string]string{"SKILL.md": declaration, "scripts/main.py": program})
	if err := os.WriteFile(archive, content, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		if err := client.RegisterSkill(ctx, archive); err != nil {
			t.Fatal(err)
		}
	}
	skills, err := client.ListSkills(ctx)
	if err != nil || !hasSkill(skills) {
		t.Fatalf("%v, %v", skills, err)
	}
	version := ""
	if versions, err := client.SkillVersions(ctx, "go-sdk"); err != nil || len(versions) != 1 {
		t.Fatalf("%v, %v", versions, err)
	} else {
		version = versions[0].Version
	}
	details, err := client.GetSkill(ctx, "go-sdk", "latest")
	if err != nil || details.Description != "Says what it gets" || details.Entrypoint != "scripts/main.py" {
		t.Fatalf("%+v, %v", details, err)
	}
	result, err := client.Run(ctx, RunRequest{Skill: "go-sdk", Input: map[string]int{"n": 21}})
	if err != nil || string(result.Output) != "42" {
		t.Fatalf("%+v, %v", result, err)
	}
	again, err := client.OpenSkillArchive(ctx, "go-sdk", version)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if read, err := io.ReadAll(again); err != nil || string(read) != string(content) {
		t.Errorf("another archive, %v", err)
	}
	for _, format := range []ToolFormat{MCP, OpenAI, Anthropic} {
		tools, err := client.Tools(ctx, format)
		if err != nil || len(tools) == 0 || !strings.Contains(string(tools[0]), `"name"`) {
			t.Errorf("%s: %s, %v", format, tools, err)
		}
	}
	if prompt, err := client.ToolsPrompt(ctx); err != nil || !strings.Contains(prompt, "<name>go-sdk</name>") {
		t.Errorf("%s, %v", prompt, err)
	}
	if err := client.DeleteSkill(ctx, "go-sdk", version); err != nil {
		t.Error(err)
	}
	var failed *Error
	if _, err := client.GetSkill(ctx, "go-sdk", "latest"); !errors.As(err, &failed) || failed.Code != CodeNotFound || failed.RequestID == "" {
		t.Error(err)
	}
}

func hasSkill(skills []Skill) bool {
	for _, skill := range skills {
		if skill.Name == "go-sdk" {
			return true
		}
	}
	return false
}

func TestRunsCodeAndKeepsItsFiles(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	if err := client.Health(ctx); err != nil {
		t.Fatal(err)
	}
	code := "import os\nos.makedirs('/sandbox/out/files/sub')\nopen('/sandbox/out/files/sub/é.txt', 'w').write('content')\nprint('said')\n" +
		"def main(args):\n    return args['n'] * 2\n"
	result, err := client.RunCode(ctx, Python, code, map[string]int{"n": 21})
	if err != nil || result.Status != Success || result.Logs.Stdout != "said\n" {
		t.Fatalf("%+v, %v", result, err)
	}
	var n int
	if err := result.Decode(&n); err != nil || n != 42 {
		t.Error(n, err)
	}
	dest := t.TempDir()
	if err := client.DownloadFiles(ctx, result, dest); err != nil || tree(t, dest) != "sub sub/é.txt=content" {
		t.Errorf("%v, %s", err, tree(t, dest))
	}
	opened, err := client.OpenFile(ctx, result.ExecutionID, "sub/é.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if content, err := io.ReadAll(opened); string(content) != "content" {
		t.Error(string(content), err)
	}
	found, err := client.Get(ctx, result.ExecutionID)
	if err != nil || found.ExecutionID != result.ExecutionID {
		t.Error(found, err)
	}
	logs, err := client.Logs(ctx, result.ExecutionID)
	if err != nil || logs.Parts[0].Text != "said\n" {
		t.Error(logs, err)
	}
	kept, err := client.Request(ctx, result.ExecutionID)
	if err != nil || !kept.Kept || kept.Request.Code != code {
		t.Error(kept, err)
	}
	rerun, err := client.Rerun(ctx, result.ExecutionID, RerunRequest{})
	if err != nil || string(rerun.Output) != "42" || rerun.ExecutionID == result.ExecutionID {
		t.Error(rerun, err)
	}
	executions, err := client.ListExecutions(ctx, ListOptions{Statuses: []Status{Success, Failed}, Since: result.CreatedAt, Limit: 1})
	if err != nil || len(executions) != 1 {
		t.Error(executions, err)
	}
	if err := client.DeleteExecution(ctx, rerun.ExecutionID); err != nil {
		t.Error(err)
	}
	failed, err := client.RunCode(ctx, Python, "raise ValueError('wrong')", nil)
	if err != nil || failed.Status != Failed || failed.Error.Name != "ValueError" || failed.Error.Value != "wrong" {
		t.Errorf("%+v, %v", failed, err)
	}
}

func TestSameIdempotencyKeyIsTheSameExecution(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	request := RunRequest{Code: "print(1)", IdempotencyKey: fmt.Sprintf("go-%d", time.Now().UnixNano())}
	first, err := client.Run(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	second, err := client.Run(ctx, request)
	if err != nil || second.ExecutionID != first.ExecutionID {
		t.Error(second, err)
	}
	request.Code = "print(2)"
	var failed *Error
	if _, err := client.Run(ctx, request); !errors.As(err, &failed) || failed.Code != CodeKeyReused {
		t.Error(err)
	}
}

func TestStreamsWaitsAndCancels(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	stream, err := client.Stream(ctx, RunRequest{Code: "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.05)"})
	if text := printed(t, stream, err); text != "0\n1\n2\n" || stream.Result().Status != Success {
		t.Errorf("%q", text)
	}
	stream, err = client.Events(ctx, stream.ExecutionID(), "2-0-0-running")
	if text := printed(t, stream, err); text != "1\n2\n" {
		t.Errorf("%q", text)
	}
	long, err := client.Run(ctx, RunRequest{Code: "import time\ntime.sleep(60)", Mode: Async})
	if err != nil || long.Status.IsFinal() {
		t.Fatalf("%+v, %v", long, err)
	}
	if ended, err := client.Cancel(ctx, long.ExecutionID); err != nil || ended.Status != Cancelled {
		t.Errorf("%+v, %v", ended, err)
	}
	if ended, err := client.Wait(ctx, long.ExecutionID); err != nil || ended.Status != Cancelled {
		t.Errorf("%+v, %v", ended, err)
	}
}

func TestKeepsBlobs(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	blob, err := client.UploadBlob(ctx, []byte("a,b\n1,2\n"), "text/csv", time.Hour)
	if err != nil || blob.Size != 8 || blob.MediaType != "text/csv" {
		t.Fatalf("%+v, %v", blob, err)
	}
	code := "import os\nprint(open('/blobs/' + os.listdir('/blobs')[0]).read(), end='')"
	result, err := client.Run(ctx, RunRequest{Code: code, Blobs: []string{blob.BlobID}})
	if err != nil || result.Logs.Stdout != "a,b\n1,2\n" {
		t.Errorf("%+v, %v", result, err)
	}
	blobs, err := client.ListBlobs(ctx)
	if err != nil || len(blobs) == 0 {
		t.Error(blobs, err)
	}
	opened, err := client.OpenBlob(ctx, blob.BlobID)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if content, _ := io.ReadAll(opened); string(content) != "a,b\n1,2\n" {
		t.Error(string(content))
	}
	if err := client.DeleteBlob(ctx, blob.BlobID); err != nil {
		t.Error(err)
	}
}

func TestShowsResultForms(t *testing.T) {
	client, ctx := realServer(t), context.Background()
	result, err := client.RunCode(ctx, Python, "from IPython.display import display, HTML\ndisplay(HTML('<b>bold</b>'))", nil)
	if err != nil || len(result.Results) != 1 || result.Results[0].HTML != "<b>bold</b>" {
		t.Fatalf("%+v, %v", result, err)
	}
	form, err := client.OpenResult(ctx, result.ExecutionID, 0, "html")
	if err != nil {
		t.Fatal(err)
	}
	defer form.Close()
	if content, _ := io.ReadAll(form); string(content) != "<b>bold</b>" {
		t.Error(string(content))
	}
}

func TestTenantIsCompared(t *testing.T) {
	ctx := context.Background()
	if _, err := realServer(t, WithTenant("default")).ListSkills(ctx); err != nil {
		t.Error(err)
	}
	var failed *Error
	if _, err := realServer(t, WithTenant("other")).ListSkills(ctx); !errors.As(err, &failed) || failed.Status != 403 || failed.Code != CodeForbidden {
		t.Error(err)
	}
}

// killed is a server that is killed and started again on the same port and data.
type killed struct {
	t       *testing.T
	binary  string
	port    int
	data    string
	process *exec.Cmd
}

func (k *killed) start() {
	k.process = exec.Command(k.binary, "serve", "--quiet")
	// Without SKILLBOX_… of this test, which the server refuses as settings that it does not know.
	k.process.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + k.data,
		"SKILLBOX_DATA_DIR=" + k.data, "SKILLBOX_API_PORT=" + strconv.Itoa(k.port), "SKILLBOX_SANDBOX_BACKEND=native",
	}
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killed) kill() {
	k.process.Process.Kill()
	k.process.Wait()
}

// Each run prints a number of its own; an execution that is recorded twice for one number was run twice.
func TestServerKilledInMidRunNeverRunsTwice(t *testing.T) {
	binary := os.Getenv("SKILLBOX_TEST_BINARY")
	if binary == "" || os.Getenv("SKILLBOX_SDK_TEST_LONG") == "" {
		t.Skip("skipped: needs SKILLBOX_TEST_BINARY and SKILLBOX_SDK_TEST_LONG=1")
	}
	kills, err := strconv.Atoi(os.Getenv("SKILLBOX_TEST_KILLS"))
	if err != nil {
		kills = 200
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &killed{t: t, binary: binary, port: free.Addr().(*net.TCPAddr).Port, data: t.TempDir()}
	free.Close()
	server.start()
	defer func() { server.kill() }()
	address, ctx := fmt.Sprintf("http://127.0.0.1:%d", server.port), context.Background()
	for started := time.Now(); New(address, "skb_none").Health(ctx) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(started) > time.Minute {
			t.Fatal("the server does not start")
		}
	}
	key, err := os.ReadFile(filepath.Join(server.data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	client := New(address, strings.TrimSpace(string(key)))
	client.pause = 200 * time.Millisecond
	outcomes := map[string]int{}
	for n := 0; n < kills; n++ {
		outcome := make(chan string)
		go func() {
			result, err := client.RunCode(ctx, Bash, fmt.Sprintf("echo %d; sleep 0.2", n), nil)
			if err != nil {
				outcome <- "error"
			} else {
				outcome <- string(result.Status)
			}
		}()
		time.Sleep(time.Duration(rand.Intn(300)) * time.Millisecond)
		server.kill()
		server.start()
		outcomes[<-outcome]++
	}
	if outcomes["success"]+outcomes["interrupted"]+outcomes["error"] != kills {
		t.Errorf("%v", outcomes)
	}
	executions, err := client.ListExecutions(ctx, ListOptions{Limit: 2 * kills})
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]int{}
	for _, execution := range executions {
		kept, err := client.Request(ctx, execution.ExecutionID)
		if err != nil || kept.Request == nil {
			t.Fatal(execution, err)
		}
		runs[kept.Request.Code]++
	}
	for code, count := range runs {
		if count != 1 {
			t.Errorf("%q ran %d times", code, count)
		}
	}
	text, _ := json.Marshal(outcomes)
	t.Logf("%d kills: %s, %d executions", kills, text, len(executions))
}
