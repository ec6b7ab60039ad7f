// Package spec defines the messages between the Lambda host and the supervisor of a jailed function, over two pipes.
package spec

import "io"

const (
	// ControlFD is the descriptor from which the supervisor reads one Setup as a line of JSON, and commands then.
	ControlFD = 3
	// ReportFD is the descriptor to which the supervisor writes Reports, each a line of JSON.
	ReportFD = 4

	// Stop is the command that stops every process of the function.
	Stop = 's'
	// Continue is the command that lets every process of the function run again.
	Continue = 'c'

	// TaskRoot is the folder of the function's binary in the jail's file system, as on AWS Lambda.
	TaskRoot = "/var/task"

	// Probe is the argument with which the supervisor's program ends at once: a function for the probe of the jail.
	Probe = "probe"
)

// The parts of the jail, as Report and the host name them.
const (
	Namespaces = "file system and process namespace"
	User       = "user without privileges"
	Filter     = "filter of system calls"
	Limits     = "limits of open files and processes"
)

// Command is a function to start.
type Command struct {
	Binary   string
	Args     []string // after the name of the binary
	Env      []string
	Output   io.Writer `json:"-"` // receives standard output and standard error
	Readable []string  // absolute paths that the function reads besides its binary and the system's folders
	Scratch  int64     // bytes that /tmp can hold
}

// Setup describes to the supervisor how it starts a function.
type Setup struct {
	Command
	Parts []string // the parts of the jail that the function gets
	ID    int      // user and group, where the function gets its own
}

// Report is the supervisor's report about a function.
type Report struct {
	PID   int  // the function's process, in the supervisor's process namespace; 0 where it was not started
	Ended bool // the process has ended, or was not started
	// how the process ended, as package os words it, or why it was not started; empty for exit status 0
	Error   string
	Refused *RefusedError // why the process was not started, where the kernel refuses a part of the jail
}

// RefusedError is the error of a function that was not started because the kernel refuses a part of the jail.
type RefusedError struct{ Part, Reason string }

// Error implements error.
func (r *RefusedError) Error() string { return r.Part + ": " + r.Reason }
