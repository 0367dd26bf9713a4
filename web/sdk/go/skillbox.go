// Package skillbox is the client of a Skillbox server: it runs skills and code of agents in sandboxes.
//
// It is one file with the standard library alone, so it can also be copied into a program. A comment `openapi:` names the
// schema or the route of the server's /openapi.json that a declaration mirrors; a test of Skillbox compares the two.
package skillbox

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Version of this package.
const Version = "0.1.0"

const (
	triesMax       = 4
	firstPause     = 500 * time.Millisecond
	pauseMax       = time.Minute
	connectMax     = 10 * time.Second
	healthMax      = 10 * time.Second
	waitMax        = 60 * time.Second // What the server accepts in ?wait=.
	idleMax        = 60 * time.Second // An idle event stream sends a comment every 15 s.
	jsonBytesMax   = 64 << 20
	uploadBytesMax = 256 << 20
	errorBytesMax  = 1 << 20
	pageItemsMax   = 200
	pagesMax       = 1000
	archiveFiles   = 10_000
	archiveBytes   = 1 << 30
	archiveDepth   = 64
	archivePathMax = 4096
)

// Client of one server with one API key. Safe for concurrent use.
type Client struct {
	base    string
	problem error // What is wrong with the arguments of New; every call returns it.
	// Functions, so that no format of fmt prints the key.
	authorize func(http.Header)
	redact    func(string) string
	tenant    string
	http      *http.Client
	timeout   time.Duration
	pause     time.Duration
	archive   archiveLimits
}

// Option of New.
type Option func(*Client)

// WithTenant makes the server reject every request (403, `forbidden`) if the API key belongs to another tenant. It never chooses one.
func WithTenant(id string) Option {
	return func(c *Client) { c.tenant = id }
}

// WithHTTPClient sends requests with hc, for a proxy, a certificate or a trace. Redirects are not followed.
func WithHTTPClient(hc *http.Client) Option {
	return func(c *Client) {
		own := *hc
		c.http = &own
	}
}

// WithTimeout limits each attempt of a request; the default is 15 minutes, longer than any run. Limit the whole call with its context.
func WithTimeout(limit time.Duration) Option {
	return func(c *Client) { c.timeout = limit }
}

// New makes a client of the server at baseURL, such as "http://127.0.0.1:8080". Wrong arguments are reported by the first call.
func New(baseURL, apiKey string, options ...Option) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectMax, KeepAlive: 30 * time.Second}).DialContext
	transport.MaxIdleConnsPerHost = 32
	c := &Client{
		base:      strings.TrimRight(baseURL, "/"),
		authorize: func(header http.Header) { header.Set("Authorization", "Bearer "+apiKey) },
		redact:    func(text string) string { return text },
		http:      &http.Client{Transport: transport},
		timeout:   15 * time.Minute,
		pause:     firstPause,
		archive:   archiveLimits{files: archiveFiles, bytes: archiveBytes},
	}
	if apiKey != "" {
		c.redact = func(text string) string { return strings.ReplaceAll(text, apiKey, "***") }
	}
	for _, option := range options {
		option(c)
	}
	// A redirect would send the key to another host.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.problem = checkArguments(baseURL, apiKey, c.tenant)
	return c
}

func checkArguments(baseURL, apiKey, tenant string) error {
	parsed, err := url.Parse(baseURL)
	switch {
	case err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "":
		return errors.New("skillbox: baseURL must be an http or https URL such as http://127.0.0.1:8080")
	case parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "":
		return errors.New("skillbox: baseURL must have no user, query or fragment; the key is the second argument of New")
	case !isHeaderText(apiKey):
		return errors.New("skillbox: apiKey must be a key such as skb_…, without spaces")
	case tenant != "" && !isHeaderText(tenant):
		return errors.New("skillbox: the tenant of WithTenant must be visible ASCII")
	}
	return nil
}

func isHeaderText(text string) bool {
	for _, r := range text {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return text != ""
}

// Format prints the address alone, whatever the verb.
func (c Client) Format(state fmt.State, _ rune) {
	if c.problem != nil {
		fmt.Fprintf(state, "skillbox.Client(%v)", c.problem)
		return
	}
	fmt.Fprintf(state, "skillbox.Client(%s)", c.base)
}

// Error is an answer of the server that is not a success. Get it by errors.As.
type Error struct {
	// Status of HTTP.
	Status int
	// Code is stable, such as CodeNotFound; empty if the answer is not of a Skillbox server.
	Code string
	// Message says what to do.
	Message string
	// RequestID finds the request in the server's log.
	RequestID string
	// Retryable says whether the same request can succeed later. The client has already tried it several times.
	Retryable bool
	// RetryAfter is how long the server wants to be left alone; 0 if unknown.
	RetryAfter time.Duration
	// Faults of an input that does not match the skill's schema.
	Faults []Fault
}

func (e *Error) Error() string {
	text := fmt.Sprintf("skillbox: %s (status %d", e.Message, e.Status)
	if e.Code != "" {
		text += ", code " + e.Code
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

// Codes of Error.
// openapi: ErrorCode
const (
	CodeInvalid              = "invalid"
	CodeUnauthenticated      = "unauthenticated"
	CodeForbidden            = "forbidden"
	CodeNotFound             = "not_found"
	CodeMethodNotAllowed     = "method_not_allowed"
	CodeRequestTimeout       = "request_timeout"
	CodeConflict             = "conflict"
	CodeKeyReused            = "key_reused"
	CodeTooLarge             = "too_large"
	CodeUnsupportedMediaType = "unsupported_media_type"
	CodeRangeNotSatisfiable  = "range_not_satisfiable"
	CodeMisdirected          = "misdirected"
	CodeRateLimited          = "rate_limited"
	CodeBusy                 = "busy"
	CodeSandboxUnavailable   = "sandbox_unavailable"
	CodeDependenciesFailed   = "dependencies_failed"
	CodeStorageFull          = "storage_full"
	CodeInternal             = "internal"
)

// Status of an execution.
type Status string

// openapi: Status
const (
	Queued      Status = "queued"
	Running     Status = "running"
	Success     Status = "success"
	Failed      Status = "failed"
	TimedOut    Status = "timeout"
	OutOfMemory Status = "oom"
	Cancelled   Status = "cancelled"
	Denied      Status = "denied"
	Interrupted Status = "interrupted"
)

// IsFinal reports whether the execution has ended.
func (s Status) IsFinal() bool { return s != Queued && s != Running }

// Language of a program.
type Language string

// openapi: Language
const (
	Python Language = "python"
	Node   Language = "node"
	Bash   Language = "bash"
)

// Mode of a run: whether its answer waits for the result.
type Mode string

// openapi: Mode
const (
	Sync  Mode = "sync"
	Async Mode = "async"
)

// OnDisconnect is what happens to a run whose client disconnects.
type OnDisconnect string

// openapi: OnDisconnect
const (
	CancelRun   OnDisconnect = "cancel"
	ContinueRun OnDisconnect = "continue"
)

// Workdir is the initial content of the working directory of a script.
type Workdir string

// openapi: Workdir
const (
	WorkdirRequest Workdir = "request"
	WorkdirSkill   Workdir = "skill"
)

// RerunVersion is the content of the skill that runs again.
type RerunVersion string

// openapi: RerunVersion
const (
	SameVersion   RerunVersion = "same"
	LatestVersion RerunVersion = "latest"
)

// ToolFormat is the format of tool definitions.
type ToolFormat string

// openapi: ToolFormat
const (
	MCP       ToolFormat = "mcp"
	OpenAI    ToolFormat = "openai"
	Anthropic ToolFormat = "anthropic"
)

// RunRequest asks for a run of Skill, or of Code. Fields left empty are not sent.
// openapi: CreateExecution
type RunRequest struct {
	Skill        string            `json:"skill,omitempty"`
	Version      string            `json:"version,omitempty"`
	Code         string            `json:"code,omitempty"`
	Language     Language          `json:"language,omitempty"`
	Input        any               `json:"input,omitempty"`
	Args         any               `json:"args,omitempty"` // []string, or a map for code.
	Files        map[string][]byte `json:"files,omitempty"`
	Workdir      Workdir           `json:"workdir,omitempty"`
	Blobs        []string          `json:"blobs,omitempty"`
	Script       string            `json:"script,omitempty"`
	Stdin        *string           `json:"stdin,omitempty"`
	MountSkills  []string          `json:"mount_skills,omitempty"`
	Requirements []string          `json:"requirements,omitempty"`
	Timeout      float64           `json:"timeout,omitempty"` // Seconds.
	CallbackURL  string            `json:"callback_url,omitempty"`
	Mode         Mode              `json:"mode,omitempty"`
	OnDisconnect OnDisconnect      `json:"on_disconnect,omitempty"`
	// IdempotencyKey makes a repeated call return the same execution for 24 hours. A random one if empty.
	IdempotencyKey string `json:"-"`
}

// RunResult is an execution. Values that the server has not are the zero values.
// openapi: Envelope
type RunResult struct {
	ExecutionID       string           `json:"execution_id"`
	Status            Status           `json:"status"`
	Skill             string           `json:"skill"`
	Version           string           `json:"version"`
	Digest            string           `json:"digest"`
	Language          Language         `json:"language"`
	Backend           string           `json:"backend"`
	BackendReason     string           `json:"backend_reason"`
	Degraded          []string         `json:"degraded"`
	Output            json.RawMessage  `json:"output"` // As the program wrote it.
	OutputPreview     string           `json:"output_preview"`
	Results           []RichResult     `json:"results"`
	ResultsTruncated  bool             `json:"results_truncated"`
	Error             *Failure         `json:"error"`
	ExitCode          *int             `json:"exit_code"`
	Logs              LogTexts         `json:"logs"`
	LogsPreview       string           `json:"logs_preview"`
	Files             []File           `json:"files"`
	FilesURL          string           `json:"files_url"`
	FilesList         []string         `json:"files_list"`
	FilesSkipped      []SkippedFile    `json:"files_skipped"`
	FilesSkippedTotal int64            `json:"files_skipped_total"`
	OutputBlobs       []OutputBlob     `json:"output_blobs"`
	Queue             *QueuePlace      `json:"queue"`
	Workdir           Workdir          `json:"workdir"`
	Requirements      []string         `json:"requirements"`
	Key               *ExecutionKey    `json:"key"`
	DurationMS        *int64           `json:"duration_ms"`
	Limits            *ExecutionLimits `json:"limits"`
	Timings           *Timings         `json:"timings"`
	Usage             *Usage           `json:"usage"`
	CreatedAt         time.Time        `json:"created_at"`
	FinishedAt        *time.Time       `json:"finished_at"`
	Omitted           []string         `json:"omitted"`
}

// Decode reads the JSON that the program returned into value.
func (r *RunResult) Decode(value any) error { return json.Unmarshal(r.Output, value) }

// Execution is an item of ListExecutions.
// openapi: Summary
type Execution struct {
	ExecutionID string        `json:"execution_id"`
	Status      Status        `json:"status"`
	Skill       string        `json:"skill"`
	Version     string        `json:"version"`
	Digest      string        `json:"digest"`
	Language    Language      `json:"language"`
	Backend     string        `json:"backend"`
	Error       *Failure      `json:"error"`
	ExitCode    *int          `json:"exit_code"`
	Key         *ExecutionKey `json:"key"`
	DurationMS  *int64        `json:"duration_ms"`
	CreatedAt   time.Time     `json:"created_at"`
	FinishedAt  *time.Time    `json:"finished_at"`
}

// Failure says why a run did not succeed, and describes an uncaught exception.
// openapi: Failure
type Failure struct {
	Exception
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Exception that code or a function raised.
// openapi: ExceptionIfAny
type Exception struct {
	Name      string `json:"name"`
	Value     string `json:"value"`
	Traceback string `json:"traceback"`
}

// RichResult is a value that code has displayed, such as a chart, in each of its forms. PNG, JPEG and PDF are base64.
// openapi: RichResult
type RichResult struct {
	IsMainResult bool              `json:"is_main_result"`
	Text         string            `json:"text"`
	HTML         string            `json:"html"`
	Markdown     string            `json:"markdown"`
	SVG          string            `json:"svg"`
	PNG          string            `json:"png"`
	JPEG         string            `json:"jpeg"`
	PDF          string            `json:"pdf"`
	LaTeX        string            `json:"latex"`
	JSON         json.RawMessage   `json:"json"`
	JavaScript   string            `json:"javascript"`
	Data         json.RawMessage   `json:"data"`
	Chart        json.RawMessage   `json:"chart"`
	Truncated    []string          `json:"truncated"`
	URLs         map[string]string `json:"urls"`
}

// LogTexts is what a program printed and logged.
// openapi: LogTexts
type LogTexts struct {
	Stdout         string    `json:"stdout"`
	Stderr         string    `json:"stderr"`
	Truncated      bool      `json:"truncated"`
	Lines          []LogLine `json:"lines"`
	LinesTruncated bool      `json:"lines_truncated"`
}

// LogLine is a line that the program logged.
// openapi: LogLine
type LogLine struct {
	Time    *time.Time      `json:"time"`
	Level   string          `json:"level"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields"`
}

// Logs is the printed output of an execution.
// openapi: StreamTexts
type Logs struct {
	Stdout         string       `json:"stdout"`
	Stderr         string       `json:"stderr"`
	StdoutTotal    int64        `json:"stdout_total"`
	StderrTotal    int64        `json:"stderr_total"`
	Truncated      bool         `json:"truncated"`
	Lines          []LogLine    `json:"lines"`
	LinesTruncated bool         `json:"lines_truncated"`
	Parts          []OutputPart `json:"parts"`
}

// OutputPart is a piece of output with the time of its arrival.
// openapi: OutputPart
type OutputPart struct {
	Time   *time.Time `json:"time"`
	Stream string     `json:"stream"` // stdout, stderr or log.
	Text   string     `json:"text"`
	Base64 string     `json:"base64"` // The bytes, if they are not UTF-8.
	Lines  []LogLine  `json:"lines"`
}

// File that a program wrote. URL works without a key for an hour.
// openapi: FileLink
type File struct {
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	URL       string `json:"url"`
}

// SkippedFile was not collected.
// openapi: Skipped
type SkippedFile struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// OutputBlob is a blob that a program created.
// openapi: OutputBlob
type OutputBlob struct {
	BlobID string `json:"blob_id"`
	Size   int64  `json:"size"`
}

// QueuePlace of a queued execution; position 1 is next.
// openapi: QueuePlace
type QueuePlace struct {
	Position int64 `json:"position"`
	Waiting  int64 `json:"waiting"`
	WaitedMS int64 `json:"waited_ms"`
}

// ExecutionKey is the API key that started an execution.
// openapi: ExecutionKey
type ExecutionKey struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// ExecutionLimits of a run.
// openapi: ExecutionLimits
type ExecutionLimits struct {
	Asked   AskedLimits   `json:"asked"`
	Granted GrantedLimits `json:"granted"`
}

// AskedLimits of the skill and the request; nil where they ask for nothing.
// openapi: AskedLimits
type AskedLimits struct {
	TimeoutMS      *int64 `json:"timeout_ms"`
	MemoryBytes    *int64 `json:"memory_bytes"`
	CPUMillis      *int64 `json:"cpu_millis"`
	WorkspaceBytes *int64 `json:"workspace_bytes"`
}

// GrantedLimits are in force.
// openapi: GrantedLimits
type GrantedLimits struct {
	TimeoutMS      int64 `json:"timeout_ms"`
	MemoryBytes    int64 `json:"memory_bytes"`
	CPUMillis      int64 `json:"cpu_millis"`
	WorkspaceBytes int64 `json:"workspace_bytes"`
}

// Timings of a run by phase.
// openapi: Timings
type Timings struct {
	QueueMS   float64 `json:"queue_ms"`
	SandboxMS float64 `json:"sandbox_ms"`
	RunMS     float64 `json:"run_ms"`
	CollectMS float64 `json:"collect_ms"`
	Warm      bool    `json:"warm"`
}

// Usage of a run.
// openapi: Usage
type Usage struct {
	CPUMS           int64 `json:"cpu_ms"`
	MemoryPeakBytes int64 `json:"memory_peak_bytes"`
	ProcessesPeak   int64 `json:"processes_peak"`
	OOMKills        int64 `json:"oom_kills"`
}

// Skill is an item of ListSkills.
// openapi: SkillSummary
type Skill struct {
	Name          string    `json:"name"`
	Version       string    `json:"version"`
	Description   string    `json:"description"`
	Dialect       string    `json:"dialect"` // program, function, toolbox or instructions.
	Language      Language  `json:"language"`
	Digest        string    `json:"digest"`
	ArchiveBytes  int64     `json:"archive_bytes"`
	UnpackedBytes int64     `json:"unpacked_bytes"`
	Files         int64     `json:"files"`
	CreatedAt     time.Time `json:"created_at"`
}

// SkillDetails is all that the author of a skill declared.
// openapi: Skill
type SkillDetails struct {
	Skill
	Latest        string            `json:"latest"`
	Entrypoint    string            `json:"entrypoint"`
	Function      *Function         `json:"function"`
	Actions       []Action          `json:"actions"`
	Image         string            `json:"image"`
	Timeout       *float64          `json:"timeout"` // Seconds.
	MemoryBytes   *int64            `json:"memory_bytes"`
	CPUMillis     *int64            `json:"cpu_millis"`
	DiskBytes     *int64            `json:"disk_bytes"`
	InputSchema   json.RawMessage   `json:"input_schema"`
	OutputSchema  json.RawMessage   `json:"output_schema"`
	Instructions  string            `json:"instructions"`
	License       string            `json:"license"`
	Compatibility string            `json:"compatibility"`
	AllowedTools  string            `json:"allowed_tools"`
	Metadata      map[string]string `json:"metadata"`
	Origins       map[string]string `json:"origins"`
	Requirements  []string          `json:"requirements"`
	Secrets       []string          `json:"secrets"`
	Warnings      []Warning         `json:"warnings"`
}

// Function of a skill that is a module.
// openapi: Function
type Function struct {
	Module string `json:"module"`
	Export string `json:"export"`
}

// Action is a script of a skill.
// openapi: Action
type Action struct {
	Path           string   `json:"path"`
	Language       Language `json:"language"`
	Summary        string   `json:"summary"`
	Usage          string   `json:"usage"`
	Dependencies   []string `json:"dependencies"`
	RequiresPython string   `json:"requires_python"`
}

// Warning about a declaration of a skill.
// openapi: Warning
type Warning struct {
	Line    *int   `json:"line"`
	Message string `json:"message"`
}

// Blob is content that outlives an execution.
// openapi: BlobInfo
type Blob struct {
	BlobID    string    `json:"blob_id"`
	Size      int64     `json:"size"`
	MediaType string    `json:"media_type"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// RerunRequest runs the kept request of an execution again.
// openapi: RerunExecution
type RerunRequest struct {
	Version      RerunVersion `json:"version,omitempty"`
	Mode         Mode         `json:"mode,omitempty"`
	OnDisconnect OnDisconnect `json:"on_disconnect,omitempty"`
	// IdempotencyKey as in RunRequest.
	IdempotencyKey string `json:"-"`
}

// KeptRequest is the request of an execution, as far as it was kept.
// openapi: ShownRequest
type KeptRequest struct {
	Kept    bool        `json:"kept"`
	Reason  string      `json:"reason"`
	Request *RunRequest `json:"request"`
	Files   []KeptFile  `json:"files"`
}

// KeptFile of a request.
// openapi: ShownFile
type KeptFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Kept   bool   `json:"kept"`
}

// Fault of an input.
// openapi: Fault
type Fault struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// openapi: Problem
type problemDocument struct {
	Type       string  `json:"type"`
	Title      string  `json:"title"`
	Status     int     `json:"status"`
	Detail     string  `json:"detail"`
	Code       string  `json:"code"`
	RequestID  string  `json:"request_id"`
	Retryable  bool    `json:"retryable"`
	RetryAfter *int64  `json:"retry_after"`
	Errors     []Fault `json:"errors"`
}

// openapi: Ready
type readiness struct {
	Ready  bool   `json:"ready"`
	Checks []part `json:"checks"`
}

// openapi: Part
type part struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// Run runs a skill or code and waits for the result; with Mode Async it returns when the run is queued. A program that fails
// is a result with its Status, not an error.
//
// A lost connection, a restarting or full server is retried with the same idempotency key, so the program never runs twice.
// openapi: POST /v1/executions
func (c *Client) Run(ctx context.Context, request RunRequest) (*RunResult, error) {
	start, err := runCall(request)
	if err != nil {
		return nil, err
	}
	return receive[RunResult](ctx, c, start)
}

func runCall(request RunRequest) (call, error) {
	files := make(map[string][]byte, len(request.Files))
	for path, content := range request.Files {
		// An empty slice, because nil would be sent as null.
		files[path] = append([]byte{}, content...)
	}
	request.Files = files
	start, err := jsonCall(http.MethodPost, "/v1/executions", request)
	start.idempotencyKey = request.IdempotencyKey
	return start, err
}

// RunCode runs code with input and waits for the result. Use Run for files, packages and limits.
func (c *Client) RunCode(ctx context.Context, language Language, code string, input any) (*RunResult, error) {
	return c.Run(ctx, RunRequest{Language: language, Code: code, Input: input})
}

// Get returns an execution.
// openapi: GET /v1/executions/{id}
func (c *Client) Get(ctx context.Context, executionID string) (*RunResult, error) {
	return receive[RunResult](ctx, c, get(execution(executionID, "")))
}

// Wait returns an execution when it has ended.
func (c *Client) Wait(ctx context.Context, executionID string) (*RunResult, error) {
	query := url.Values{"wait": {strconv.Itoa(int(waitMax / time.Second))}}
	for {
		result, err := receive[RunResult](ctx, c, get(execution(executionID, "")+"?"+query.Encode()))
		if err != nil || result.Status.IsFinal() {
			return result, err
		}
	}
}

// Cancel cancels an execution and returns its final state.
// openapi: POST /v1/executions/{id}/cancel
func (c *Client) Cancel(ctx context.Context, executionID string) (*RunResult, error) {
	return receive[RunResult](ctx, c, call{method: http.MethodPost, path: execution(executionID, "/cancel")})
}

// Rerun runs the kept request of an execution again, as Run does.
// openapi: POST /v1/executions/{id}/rerun
func (c *Client) Rerun(ctx context.Context, executionID string, request RerunRequest) (*RunResult, error) {
	call, err := jsonCall(http.MethodPost, execution(executionID, "/rerun"), request)
	if err != nil {
		return nil, err
	}
	call.idempotencyKey = request.IdempotencyKey
	return receive[RunResult](ctx, c, call)
}

// Request returns the request of an execution.
// openapi: GET /v1/executions/{id}/request
func (c *Client) Request(ctx context.Context, executionID string) (*KeptRequest, error) {
	return receive[KeptRequest](ctx, c, get(execution(executionID, "/request")))
}

// Logs returns what an execution has printed so far, with times.
// openapi: GET /v1/executions/{id}/logs
func (c *Client) Logs(ctx context.Context, executionID string) (*Logs, error) {
	return receive[Logs](ctx, c, get(execution(executionID, "/logs?timestamps=true")))
}

// ListOptions selects executions. Empty fields select all.
type ListOptions struct {
	Statuses     []Status
	Skill        string
	Since, Until time.Time
	// Limit is the most executions returned; 0 means 200.
	Limit int
}

// ListExecutions returns executions, the newest first.
// openapi: GET /v1/executions
func (c *Client) ListExecutions(ctx context.Context, options ListOptions) ([]Execution, error) {
	query := url.Values{}
	statuses := make([]string, len(options.Statuses))
	for i, status := range options.Statuses {
		statuses[i] = string(status)
	}
	times := map[string]time.Time{"since": options.Since, "until": options.Until}
	for name, moment := range times {
		if !moment.IsZero() {
			query.Set(name, moment.UTC().Format(time.RFC3339Nano))
		}
	}
	if len(statuses) > 0 {
		query.Set("status", strings.Join(statuses, ","))
	}
	if options.Skill != "" {
		query.Set("skill", options.Skill)
	}
	limit := options.Limit
	if limit == 0 {
		limit = pageItemsMax
	}
	return list[Execution](ctx, c, "/v1/executions", query, limit)
}

// DeleteExecution deletes an ended execution with its request, output, logs and files.
// openapi: DELETE /v1/executions/{id}
func (c *Client) DeleteExecution(ctx context.Context, executionID string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: execution(executionID, "")}, nil)
}

// OpenFile reads one file of an execution. Close it.
// openapi: GET /v1/executions/{id}/files/{path}
func (c *Client) OpenFile(ctx context.Context, executionID, path string) (io.ReadCloser, error) {
	return c.open(ctx, get(execution(executionID, "/files/"+escapePath(path))))
}

// OpenResult reads one form of the n-th result of an execution, such as "png". Close it.
// openapi: GET /v1/executions/{id}/results/{n}/{form}
func (c *Client) OpenResult(ctx context.Context, executionID string, n int, form string) (io.ReadCloser, error) {
	return c.open(ctx, get(execution(executionID, fmt.Sprintf("/results/%d/%s", n, url.PathEscape(form)))))
}

// RegisterSkill publishes the zip archive at zipPath. Publishing the same content again changes nothing.
func (c *Client) RegisterSkill(ctx context.Context, zipPath string) error {
	file, err := os.Open(zipPath)
	if err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	defer file.Close()
	archive, err := readAll(file, uploadBytesMax)
	if err != nil {
		return fmt.Errorf("skillbox: %s: %w", zipPath, err)
	}
	_, err = c.PublishSkill(ctx, archive)
	return err
}

// PublishSkill publishes a zip archive and returns the skill.
// openapi: POST /v1/skills
func (c *Client) PublishSkill(ctx context.Context, archive []byte) (*SkillDetails, error) {
	return receive[SkillDetails](ctx, c, call{
		method: http.MethodPost, path: "/v1/skills", contentType: "application/zip", body: archive,
	})
}

// ListSkills returns the latest version of each skill.
// openapi: GET /v1/skills
func (c *Client) ListSkills(ctx context.Context) ([]Skill, error) {
	return list[Skill](ctx, c, "/v1/skills", nil, pagesMax*pageItemsMax)
}

// SkillVersions returns the versions of a skill, the most recent push first.
// openapi: GET /v1/skills/{name}
func (c *Client) SkillVersions(ctx context.Context, name string) ([]Skill, error) {
	return list[Skill](ctx, c, "/v1/skills/"+url.PathEscape(name), nil, pagesMax*pageItemsMax)
}

// GetSkill returns a version of a skill: a semantic version, "latest" or a digest.
// openapi: GET /v1/skills/{name}/{version}
func (c *Client) GetSkill(ctx context.Context, name, version string) (*SkillDetails, error) {
	return receive[SkillDetails](ctx, c, get(skill(name, version)))
}

// OpenSkillArchive reads the archive of a skill as it was uploaded. Close it.
// openapi: GET /v1/skills/{name}/{version}/archive
func (c *Client) OpenSkillArchive(ctx context.Context, name, version string) (io.ReadCloser, error) {
	return c.open(ctx, get(skill(name, version)+"/archive"))
}

// DeleteSkill deletes a version of a skill.
// openapi: DELETE /v1/skills/{name}/{version}
func (c *Client) DeleteSkill(ctx context.Context, name, version string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: skill(name, version)}, nil)
}

// Tools returns the callable skills as tool definitions of a model.
// openapi: GET /v1/tools
func (c *Client) Tools(ctx context.Context, format ToolFormat) ([]json.RawMessage, error) {
	query := url.Values{"format": {string(format)}}
	return list[json.RawMessage](ctx, c, "/v1/tools", query, pagesMax*pageItemsMax)
}

// ToolsPrompt returns the skills as text for a model's prompt.
// openapi: GET /v1/tools/prompt
func (c *Client) ToolsPrompt(ctx context.Context) (string, error) {
	var text strings.Builder
	query := url.Values{"limit": {strconv.Itoa(pageItemsMax)}}
	for page := 0; page < pagesMax; page++ {
		next := ""
		err := c.do(ctx, get("/v1/tools/prompt?"+query.Encode()), func(response *http.Response) error {
			content, err := readAll(response.Body, jsonBytesMax)
			text.Write(content)
			next = response.Header.Get("X-Next-Page-Token")
			return err
		})
		if err != nil || next == "" {
			return text.String(), err
		}
		query.Set("page_token", next)
	}
	return "", errors.New("skillbox: /v1/tools/prompt has too many pages")
}

// UploadBlob stores content for ttl; 0 means as long as the server keeps blobs. The blob's id is an entry of RunRequest.Blobs.
// openapi: POST /v1/blobs
func (c *Client) UploadBlob(ctx context.Context, content []byte, mediaType string, ttl time.Duration) (*Blob, error) {
	if mediaType == "" {
		mediaType = "application/octet-stream"
	}
	path := "/v1/blobs"
	if ttl > 0 {
		path += "?ttl=" + strconv.FormatInt(int64(ttl.Seconds()), 10)
	}
	return receive[Blob](ctx, c, call{method: http.MethodPost, path: path, contentType: mediaType, body: content})
}

// ListBlobs returns blobs, the newest first.
// openapi: GET /v1/blobs
func (c *Client) ListBlobs(ctx context.Context) ([]Blob, error) {
	return list[Blob](ctx, c, "/v1/blobs", nil, pagesMax*pageItemsMax)
}

// OpenBlob reads a blob. Close it.
// openapi: GET /v1/blobs/{id}
func (c *Client) OpenBlob(ctx context.Context, blobID string) (io.ReadCloser, error) {
	return c.open(ctx, get("/v1/blobs/"+url.PathEscape(blobID)))
}

// DeleteBlob deletes a blob.
// openapi: DELETE /v1/blobs/{id}
func (c *Client) DeleteBlob(ctx context.Context, blobID string) error {
	return c.do(ctx, call{method: http.MethodDelete, path: "/v1/blobs/" + url.PathEscape(blobID)}, nil)
}

// Health returns nil if the server can run programs, else an error that names the parts that fail. It needs no key and is not retried.
// openapi: GET /readyz
func (c *Client) Health(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthMax)
	defer cancel()
	if c.problem != nil {
		return c.problem
	}
	check := get("/readyz")
	response, err := c.exchange(ctx, check, "")
	if err != nil {
		return c.transportError(check, err)
	}
	defer response.Body.Close()
	var ready readiness
	content, err := readAll(response.Body, errorBytesMax)
	if err != nil || json.Unmarshal(content, &ready) != nil {
		return &Error{Status: response.StatusCode, Message: "no answer of a Skillbox server at " + c.base}
	}
	if ready.Ready && response.StatusCode == http.StatusOK {
		return nil
	}
	var failed []string
	for _, check := range ready.Checks {
		if !check.OK {
			failed = append(failed, check.Name)
		}
	}
	return &Error{
		Status: response.StatusCode, Message: "not ready: " + strings.Join(failed, ", "),
		RequestID: response.Header.Get("X-Request-Id"), Retryable: true,
	}
}

// Event of a run. Those of types that this version does not know are skipped.
type Event struct {
	// ID is the position of the event in the stream; Events resumes after it.
	ID string
	// Type says which of the other fields is set.
	Type   EventType
	Status *StatusEvent  // EventStatus
	Output *PrintedEvent // EventStdout, EventStderr
	Log    *LogLine      // EventLog
	Result *RunResult    // EventResult
	End    *EndEvent     // EventEnd
}

// EventType of an event.
type EventType string

// openapi: Events
const (
	EventStatus EventType = "status"
	EventStdout EventType = "stdout"
	EventStderr EventType = "stderr"
	EventLog    EventType = "log"
	EventResult EventType = "result"
	EventEnd    EventType = "end"
)

// StatusEvent is sent first and with each change.
// openapi: StatusEvent
type StatusEvent struct {
	ExecutionID   string `json:"execution_id"`
	Status        Status `json:"status"`
	QueuePosition *int64 `json:"queue_position"`
}

// PrintedEvent is text that the program printed.
// openapi: PrintedEvent
type PrintedEvent struct {
	Text   string `json:"text"`
	Base64 string `json:"base64"` // The bytes, if they are not UTF-8.
}

// EndEvent is the last event.
// openapi: EndEvent
type EndEvent struct {
	Status Status    `json:"status"`
	Reason EndReason `json:"reason"`
}

// EndReason says why a stream ended.
type EndReason string

// openapi: EndReason
const (
	Finished EndReason = "finished"
	Shutdown EndReason = "shutdown" // The stream resumes by itself; the caller does not see it.
)

// Stream runs a skill or code and returns its events as they occur. Close the stream; this does not cancel the run.
func (c *Client) Stream(ctx context.Context, request RunRequest) (*EventStream, error) {
	start, err := runCall(request)
	if err == nil && start.idempotencyKey == "" {
		// The same one for each connection until the execution's id is known.
		start.idempotencyKey, err = newIdempotencyKey()
	}
	if err != nil {
		return nil, err
	}
	return connected(&EventStream{client: c, ctx: ctx, start: start})
}

// Events returns the events of an execution, from the beginning or after the event lastEventID.
// openapi: GET /v1/executions/{id}/events
func (c *Client) Events(ctx context.Context, executionID, lastEventID string) (*EventStream, error) {
	return connected(&EventStream{client: c, ctx: ctx, executionID: executionID, lastID: lastEventID})
}

func connected(stream *EventStream) (*EventStream, error) {
	if err := stream.connect(); err != nil {
		return nil, err
	}
	return stream, nil
}

// EventStream reads the events of a run, and resumes by itself after a lost connection. Not for concurrent use.
type EventStream struct {
	client      *Client
	ctx         context.Context
	start       call
	executionID string
	lastID      string
	body        io.ReadCloser
	reader      *bufio.Reader
	failures    int
	event       Event
	result      *RunResult
	done        bool
	err         error
}

// Next reads the next event. It returns false at the end of the stream and after an error: see Err.
func (s *EventStream) Next() bool {
	for !s.done && s.err == nil {
		if s.body == nil {
			s.err = s.connect()
			continue
		}
		event, err := readEvent(s.reader)
		if err == nil && !(event.End != nil && event.End.Reason == Shutdown) {
			s.record(event)
			return true
		}
		s.disconnect()
		if err == nil {
			err = errors.New("the server stops")
		}
		s.failures++
		if s.failures >= triesMax || !isWorthRetrying(err) {
			s.err = s.client.transportError(s.source(), err)
		} else if !sleep(s.ctx, s.client.backoff(s.failures)) {
			s.err = s.client.transportError(s.source(), s.ctx.Err())
		}
	}
	return false
}

// Event returns what Next has read.
func (s *EventStream) Event() Event { return s.event }

// Err returns why the stream ended early, if it did.
func (s *EventStream) Err() error { return s.err }

// Result returns the result, once EventResult was read.
func (s *EventStream) Result() *RunResult { return s.result }

// ExecutionID returns the id of the execution, once the first event was read.
func (s *EventStream) ExecutionID() string { return s.executionID }

// Close ends the stream. The run continues.
func (s *EventStream) Close() error {
	s.done = true
	s.disconnect()
	return nil
}

func (s *EventStream) record(event Event) {
	if event.ID != s.lastID {
		s.failures = 0
	}
	s.event, s.lastID = event, event.ID
	switch {
	case event.Status != nil:
		s.executionID = event.Status.ExecutionID
	case event.Result != nil:
		s.result = event.Result
	case event.End != nil:
		s.done = true
		s.disconnect()
	}
}

// source is the request that opens the stream, again after the last event.
func (s *EventStream) source() call {
	source := s.start
	if s.executionID != "" {
		source = get(execution(s.executionID, "/events"))
		source.lastEventID = s.lastID
	}
	source.accept = "text/event-stream"
	return source
}

func (s *EventStream) connect() error {
	body, err := s.client.open(s.ctx, s.source())
	if err != nil {
		return err
	}
	if body == nil {
		// 204: the event before was the last.
		s.done = true
		return nil
	}
	s.body, s.reader = body, bufio.NewReaderSize(body, 64<<10)
	return nil
}

func (s *EventStream) disconnect() {
	if s.body != nil {
		s.body.Close()
		s.body = nil
	}
}

// readEvent reads one event of text/event-stream.
func readEvent(reader *bufio.Reader) (Event, error) {
	var event Event
	var data []byte
	hasData := false
	for {
		line, err := readLine(reader, jsonBytesMax-len(data))
		if err != nil {
			return event, err
		}
		if len(line) == 0 {
			if content := event.content(); hasData && content != nil {
				return event, decode(data, content)
			}
			event, data, hasData = Event{ID: event.ID}, nil, false
			continue
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			event.ID = value
		case "event":
			event.Type = EventType(value)
		case "data":
			if hasData {
				data = append(data, '\n')
			}
			data, hasData = append(data, value...), true
		}
	}
}

// content returns where the data of the event belongs; nil for an unknown type.
func (e *Event) content() any {
	switch e.Type {
	case EventStatus:
		e.Status = new(StatusEvent)
		return e.Status
	case EventStdout, EventStderr:
		e.Output = new(PrintedEvent)
		return e.Output
	case EventLog:
		e.Log = new(LogLine)
		return e.Log
	case EventResult:
		e.Result = new(RunResult)
		return e.Result
	case EventEnd:
		e.End = new(EndEvent)
		return e.End
	default:
		return nil
	}
}

func readLine(reader *bufio.Reader, bytesMax int) ([]byte, error) {
	var line []byte
	for {
		piece, err := reader.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > bytesMax:
			return nil, &permanentError{fmt.Sprintf("an event has more than %d bytes", jsonBytesMax)}
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// call is a request that can be sent several times.
type call struct {
	method, path   string
	contentType    string
	body           []byte
	accept         string
	idempotencyKey string
	lastEventID    string
}

func get(path string) call { return call{method: http.MethodGet, path: path} }

func jsonCall(method, path string, content any) (call, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	// A program gets its input as it was sent.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return call{}, fmt.Errorf("skillbox: the request is no JSON: %w", err)
	}
	return call{method: method, path: path, contentType: "application/json", body: body.Bytes()}, nil
}

func execution(id, rest string) string { return "/v1/executions/" + url.PathEscape(id) + rest }

func skill(name, version string) string {
	return "/v1/skills/" + url.PathEscape(name) + "/" + url.PathEscape(version)
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

func receive[T any](ctx context.Context, c *Client, request call) (*T, error) {
	value := new(T)
	err := c.do(ctx, request, func(response *http.Response) error {
		content, err := readAll(response.Body, jsonBytesMax)
		if err != nil {
			return err
		}
		return decode(content, value)
	})
	if err != nil {
		return nil, err
	}
	return value, nil
}

// openapi: List_Summary List_SkillSummary List_BlobInfo List_ToolDefinition
type page[T any] struct {
	Items         []T    `json:"items"`
	NextPageToken string `json:"next_page_token"`
}

// list reads pages until limit items.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, limit int) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	items := []T{}
	for pages := 0; pages < pagesMax; pages++ {
		query.Set("limit", strconv.Itoa(min(pageItemsMax, limit-len(items))))
		next, err := receive[page[T]](ctx, c, get(path+"?"+query.Encode()))
		if err != nil {
			return nil, err
		}
		items = append(items, next.Items...)
		if next.NextPageToken == "" || len(items) >= limit {
			return items, nil
		}
		query.Set("page_token", next.NextPageToken)
	}
	return nil, fmt.Errorf("skillbox: %s has more than %d pages", path, pagesMax)
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// do sends the request until an attempt succeeds, cannot succeed later, or is the last one. Consume reads the answer; an
// error in it counts as a lost connection.
func (c *Client) do(ctx context.Context, request call, consume func(*http.Response) error) error {
	return c.retry(ctx, request, func(ctx context.Context, key string) error {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		response, err := c.attempt(ctx, request, key)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if consume == nil {
			return nil
		}
		return consume(response)
	})
}

// open sends the request as do does and returns the body; nil for an answer without one.
func (c *Client) open(ctx context.Context, request call) (io.ReadCloser, error) {
	var opened io.ReadCloser
	err := c.retry(ctx, request, func(ctx context.Context, key string) error {
		watched, cancel := context.WithCancel(ctx)
		watchdog := time.AfterFunc(c.timeout, cancel)
		response, err := c.attempt(watched, request, key)
		watchdog.Stop()
		if err != nil || response.StatusCode == http.StatusNoContent {
			cancel()
			return timeIsOver(ctx, err)
		}
		opened = &idleBody{ReadCloser: response.Body, ctx: ctx, watchdog: watchdog, cancel: cancel}
		return nil
	})
	return opened, err
}

// idleBody gives up a connection that sends nothing.
type idleBody struct {
	io.ReadCloser
	ctx      context.Context // Of the caller.
	watchdog *time.Timer
	cancel   context.CancelFunc
}

func (b *idleBody) Read(buffer []byte) (int, error) {
	b.watchdog.Reset(idleMax)
	defer b.watchdog.Stop()
	n, err := b.ReadCloser.Read(buffer)
	return n, timeIsOver(b.ctx, err)
}

// timeIsOver says that the time is over where a watchdog has cancelled, not the caller.
func timeIsOver(caller context.Context, err error) error {
	if errors.Is(err, context.Canceled) && caller.Err() == nil {
		return context.DeadlineExceeded
	}
	return err
}

func (b *idleBody) Close() error {
	b.watchdog.Stop()
	b.cancel()
	return b.ReadCloser.Close()
}

func (c *Client) retry(ctx context.Context, request call, attempt func(context.Context, string) error) error {
	if c.problem != nil {
		return c.problem
	}
	key := request.idempotencyKey
	if key == "" && request.method == http.MethodPost {
		var err error
		if key, err = newIdempotencyKey(); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		err := attempt(ctx, key)
		if err == nil {
			return nil
		}
		pause := c.backoff(try)
		var answered *Error
		if errors.As(err, &answered) {
			if answered.RetryAfter > pause {
				pause = answered.RetryAfter
			}
		} else {
			err = c.transportError(request, err)
		}
		deadline, hasDeadline := ctx.Deadline()
		if try == triesMax || !isWorthRetrying(err) || pause > pauseMax || (hasDeadline && time.Until(deadline) < pause) || !sleep(ctx, pause) {
			return err
		}
	}
}

// isWorthRetrying is true for lost connections and for answers of a server or proxy that is full or restarts.
func isWorthRetrying(err error) bool {
	var permanent *permanentError
	if errors.As(err, &permanent) {
		return false
	}
	var answered *Error
	if !errors.As(err, &answered) {
		return true
	}
	switch answered.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// backoff doubles the pause with each try and varies it, so that clients do not return all at once.
func (c *Client) backoff(try int) time.Duration {
	pause := c.pause << (try - 1)
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return pause
	}
	half := uint64(pause/2) + 1
	return pause/2 + time.Duration(binary.BigEndian.Uint64(random[:])%half)
}

func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func newIdempotencyKey() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("skillbox: no random idempotency key: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}

// attempt sends the request once. An answer that is not a success is an *Error.
func (c *Client) attempt(ctx context.Context, request call, key string) (*http.Response, error) {
	response, err := c.exchange(ctx, request, key)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		return nil, c.problemOf(response)
	}
	return response, nil
}

func (c *Client) exchange(ctx context.Context, request call, key string) (*http.Response, error) {
	sent, err := http.NewRequestWithContext(ctx, request.method, c.base+request.path, bytes.NewReader(request.body))
	if err != nil {
		return nil, err
	}
	c.authorize(sent.Header)
	sent.Header.Set("User-Agent", "skillbox-go/"+Version)
	for name, value := range map[string]string{
		"Accept": request.accept, "Content-Type": request.contentType, "Idempotency-Key": key,
		"Last-Event-ID": request.lastEventID, "X-Skillbox-Tenant": c.tenant,
	} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	return c.http.Do(sent)
}

func (c *Client) problemOf(response *http.Response) error {
	failed := &Error{
		Status: response.StatusCode, Message: http.StatusText(response.StatusCode),
		RequestID: response.Header.Get("X-Request-Id"), RetryAfter: retryAfter(response.Header.Get("Retry-After")),
	}
	content, err := readAll(response.Body, errorBytesMax)
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var problem problemDocument
	if err == nil && mediaType == "application/problem+json" && json.Unmarshal(content, &problem) == nil {
		failed.Code, failed.Retryable, failed.Faults = problem.Code, problem.Retryable, problem.Errors
		failed.RequestID = problem.RequestID
		if failed.Message = c.redact(problem.Detail); failed.Message == "" {
			failed.Message = problem.Title
		}
	}
	return failed
}

// retryAfter reads seconds or a date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if moment, err := http.ParseTime(text); err == nil && time.Until(moment) > 0 {
		return time.Until(moment)
	}
	return 0
}

// requestError is a request without an answer. Its text has no key, no query and no link.
type requestError struct {
	text  string
	cause error
}

func (e *requestError) Error() string { return e.text }

func (e *requestError) Unwrap() error { return e.cause }

func (c *Client) transportError(request call, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	path, _, _ := strings.Cut(request.path, "?")
	text := fmt.Sprintf("skillbox: %s %s%s: %v", request.method, c.base, path, err)
	return &requestError{text: c.redact(text), cause: err}
}

// permanentError is an answer that another attempt does not change.
type permanentError struct{ text string }

func (e *permanentError) Error() string { return "skillbox: " + e.text }

func decode(content []byte, value any) error {
	if err := json.Unmarshal(content, value); err != nil {
		return &permanentError{"an answer that this version cannot read: " + err.Error()}
	}
	return nil
}

func readAll(reader io.Reader, bytesMax int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(reader, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		err = &permanentError{fmt.Sprintf("more than %d bytes", bytesMax)}
	}
	return content, err
}

// DownloadFiles writes the files of a result into destDir, which is created if it does not exist.
//
// The server's archive is checked before anything is written: it must have the files of the result alone, each once, as regular
// files below destDir, at most 10,000 and 1 GiB. An existing file is not replaced, and no link in destDir is followed. After an error nothing
// that was written remains.
// openapi: GET /v1/executions/{id}/files
func (c *Client) DownloadFiles(ctx context.Context, result *RunResult, destDir string) error {
	if len(result.FilesList) == 0 {
		return nil
	}
	archive, err := os.CreateTemp("", "skillbox-*.tar.gz")
	if err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	err = c.do(ctx, get(execution(result.ExecutionID, "/files")), func(response *http.Response) error {
		if err := archive.Truncate(0); err != nil {
			return err
		}
		if _, err := archive.Seek(0, io.SeekStart); err != nil {
			return err
		}
		copied, err := io.Copy(archive, io.LimitReader(response.Body, c.archive.bytes+1))
		if err == nil && copied > c.archive.bytes {
			err = &permanentError{fmt.Sprintf("the archive of files has more than %d bytes", c.archive.bytes)}
		}
		return err
	})
	if err == nil {
		err = unpack(archive, destDir, newArchiveCheck(result.Files, c.archive))
	}
	return err
}

type archiveLimits struct {
	files int
	bytes int64
}

func unpack(archive io.ReadSeeker, destDir string, check *archiveCheck) error {
	if err := walk(archive, check.entry); err != nil {
		return err
	}
	for path := range check.missing {
		return &permanentError{fmt.Sprintf("the archive of files lacks %q", path)}
	}
	if err := os.MkdirAll(destDir, 0o755); err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	written := &writtenFiles{folder: destDir}
	err := walk(archive, written.entry)
	if err != nil {
		written.remove()
	}
	return err
}

// walk calls visit for each entry of a tar.gz from its beginning.
func walk(archive io.ReadSeeker, visit func(*tar.Header, io.Reader) error) error {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	unzipped, err := gzip.NewReader(bufio.NewReader(archive))
	if err != nil {
		return &permanentError{"the archive of files is no tar.gz: " + err.Error()}
	}
	defer unzipped.Close()
	entries := tar.NewReader(unzipped)
	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &permanentError{"the archive of files is damaged: " + err.Error()}
		}
		if err := visit(header, entries); err != nil {
			return err
		}
	}
}

// archiveCheck knows the paths of the entries before.
type archiveCheck struct {
	left    archiveLimits
	paths   map[string]entryKind
	missing map[string]File // Of the result.
}

func newArchiveCheck(files []File, limits archiveLimits) *archiveCheck {
	check := &archiveCheck{left: limits, paths: map[string]entryKind{}, missing: map[string]File{}}
	for _, file := range files {
		check.missing[file.Path] = file
	}
	return check
}

type entryKind int

const (
	absent entryKind = iota
	parentFolder
	namedFolder
	regularFile
)

func (a *archiveCheck) entry(header *tar.Header, content io.Reader) error {
	refused := func(why string) error {
		return &permanentError{fmt.Sprintf("the archive of files has %q, which %s", header.Name, why)}
	}
	kind := regularFile
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir:
		kind = namedFolder
	default:
		return refused("is neither a file nor a folder")
	}
	parts, why := plainParts(header)
	if why != "" {
		return refused(why)
	}
	for i := 1; i < len(parts); i++ {
		switch parent := strings.Join(parts[:i], "/"); a.paths[parent] {
		case absent:
			a.paths[parent] = parentFolder
		case regularFile:
			return refused("lies below a file")
		}
	}
	path := strings.Join(parts, "/")
	if before := a.paths[path]; before != absent && (before != parentFolder || kind != namedFolder) {
		return refused("has the path of another entry")
	}
	a.paths[path] = kind
	a.left.files--
	a.left.bytes -= header.Size
	if header.Size < 0 || a.left.files < 0 || a.left.bytes < 0 {
		return refused("is beyond the limit of files or bytes")
	}
	// The reader returns no more than the size of the header.
	digest := sha256.New()
	if _, err := io.Copy(digest, content); err != nil {
		return &permanentError{"the archive of files is damaged: " + err.Error()}
	}
	if kind == regularFile && a.missing[path].SHA256 != "sha256:"+hex.EncodeToString(digest.Sum(nil)) {
		return refused("is not the file of the result")
	}
	delete(a.missing, path)
	return nil
}

// plainParts splits the path of an entry, or says what is wrong with it.
func plainParts(header *tar.Header) ([]string, string) {
	name := header.Name
	if header.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	parts := strings.Split(name, "/")
	if len(name) > archivePathMax || len(parts) > archiveDepth {
		return nil, "is too long or too deep"
	}
	for _, part := range parts {
		switch {
		case part == "" || part == "." || part == "..":
			return nil, "is not a plain relative path"
		case strings.ContainsRune(part, 0):
			return nil, "has a zero byte"
		case runtime.GOOS == "windows" && !isWindowsName(part):
			return nil, "is no name on Windows"
		}
	}
	return parts, ""
}

func isWindowsName(name string) bool {
	if strings.ContainsAny(name, "\\:*?\"<>|") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
		return false
	}
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch base = strings.TrimRight(base, " "); {
	case base == "CON" || base == "PRN" || base == "AUX" || base == "NUL" || base == "CONIN$" || base == "CONOUT$":
		return false
	case strings.HasPrefix(base, "COM") || strings.HasPrefix(base, "LPT"):
		return len([]rune(base)) != 4
	}
	return true
}

// writtenFiles writes entries that were checked, and knows what to remove after an error.
type writtenFiles struct {
	folder  string
	created []string
}

func (w *writtenFiles) entry(header *tar.Header, content io.Reader) error {
	parts, _ := plainParts(header)
	path := w.folder
	for i, part := range parts {
		path = filepath.Join(path, part)
		if i == len(parts)-1 && header.Typeflag == tar.TypeReg {
			break
		}
		if err := w.enter(path); err != nil {
			return err
		}
	}
	if header.Typeflag == tar.TypeDir {
		return nil
	}
	// Fails for an existing file and for a link.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	w.created = append(w.created, path)
	_, err = io.Copy(file, content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("skillbox: %w", err)
	}
	return nil
}

// enter makes a folder, or accepts one that exists and is no link.
func (w *writtenFiles) enter(folder string) error {
	err := os.Mkdir(folder, 0o755)
	if err == nil {
		w.created = append(w.created, folder)
		return nil
	}
	if found, missing := os.Lstat(folder); missing == nil && found.IsDir() {
		return nil
	}
	return fmt.Errorf("skillbox: %w", err)
}

func (w *writtenFiles) remove() {
	for i := len(w.created) - 1; i >= 0; i-- {
		os.Remove(w.created[i])
	}
}
