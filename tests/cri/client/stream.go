// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/net/websocket"
)

// Kubernetes' protocol v4 for a command's streams over a WebSocket: the first byte of each message
// names its channel.
const (
	toStdin = iota
	fromStdout
	fromStderr
	fromStatus
)

type exitCode int

func (e exitCode) Error() string   { return fmt.Sprintf("exit code %d", int(e)) }
func (e exitCode) ExitStatus() int { return int(e) }

func stream(url string, stdin bool) error {
	config, err := websocket.NewConfig(strings.Replace(url, "http", "ws", 1), url)
	if err != nil {
		return err
	}
	config.Protocol = []string{"v4.channel.k8s.io"}
	conn, err := websocket.DialConfig(config)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.PayloadType = websocket.BinaryFrame
	if stdin {
		// v4 has no end of the input: the command must not wait for one.
		go send(conn)
	}
	for {
		var message []byte
		err := websocket.Message.Receive(conn, &message)
		if errors.Is(err, io.EOF) {
			return nil // attached to something that goes on
		}
		if err != nil {
			return err
		}
		if len(message) < 1 {
			continue
		}
		switch data := message[1:]; message[0] {
		case fromStdout:
			os.Stdout.Write(data)
		case fromStderr:
			os.Stderr.Write(data)
		case fromStatus:
			if len(data) > 0 {
				return outcome(data)
			}
		}
	}
}

func send(conn *websocket.Conn) {
	buffer := make([]byte, 4096)
	buffer[0] = toStdin
	for {
		n, err := os.Stdin.Read(buffer[1:])
		if n > 0 {
			if websocket.Message.Send(conn, buffer[:n+1]) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// outcome reads the status that ends a stream.
func outcome(data []byte) error {
	var status struct {
		Status, Message, Reason string
		Details                 struct {
			Causes []struct{ Reason, Message string }
		}
	}
	if err := json.Unmarshal(data, &status); err != nil {
		return err
	}
	if status.Status == "Success" {
		return nil
	}
	for _, cause := range status.Details.Causes {
		if cause.Reason == "ExitCode" {
			code, err := strconv.Atoi(cause.Message)
			if err == nil {
				return exitCode(code)
			}
		}
	}
	return errors.New(status.Message)
}
