// SPDX-License-Identifier: Apache-2.0

// client SOCKET METHOD [ARGUMENT...] calls a method of the container runtime interface by the
// library that the kubelet calls it by. Arguments are words, or JSON where a method takes a message
// or a list; those that are left out are empty. What the method returns is printed: words as they
// are, messages as JSON, one line each. ExecSync ends as the command does that it ran.
//
// client SOCKET stream Exec|Attach REQUEST also opens the address that these two return; our
// standard input goes there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
)

// Long enough for an emulated machine.
const timeout = 4 * time.Minute

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: client SOCKET METHOD [ARGUMENT...] | client SOCKET stream Exec|Attach REQUEST")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		// The error of a command that ran and failed knows its exit code.
		var exit interface{ ExitStatus() int }
		if errors.As(err, &exit) {
			os.Exit(exit.ExitStatus())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
}

func run(socket, method string, words []string) error {
	service, err := remote.NewRemoteRuntimeService("unix://"+socket, timeout, nil, nil)
	if err != nil {
		return err
	}
	if method == "stream" {
		if len(words) != 2 {
			return errors.New("stream: a method and its request are expected")
		}
		return openStream(service, words[0], words[1])
	}
	return call(service, method, words)
}

func call(service internalapi.RuntimeService, name string, words []string) error {
	method := reflect.ValueOf(service).MethodByName(name)
	if !method.IsValid() {
		return fmt.Errorf("there is no method %q", name)
	}
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn(); i++ {
		t := method.Type().In(i)
		if i > len(words) {
			args = append(args, reflect.Zero(t))
			continue
		}
		arg, err := parse(t, words[i-1])
		if err != nil {
			return fmt.Errorf("%s: argument %d: %w", name, i, err)
		}
		args = append(args, arg)
	}
	if len(words) >= len(args) {
		return fmt.Errorf("%s: too many arguments", name)
	}
	out := method.Call(args)
	last := len(out) - 1
	for i, value := range out[:last] {
		if err := show(value, i); err != nil {
			return err
		}
	}
	err, _ := out[last].Interface().(error)
	return err
}

func parse(t reflect.Type, word string) (reflect.Value, error) {
	value := reflect.New(t).Elem()
	var err error
	switch p := value.Addr().Interface().(type) {
	case *string:
		*p = word
	case *bool:
		*p, err = strconv.ParseBool(word)
	case *time.Duration:
		*p, err = time.ParseDuration(word)
	default:
		if t.Kind() == reflect.Pointer {
			if m, ok := reflect.New(t.Elem()).Interface().(proto.Message); ok {
				err = protojson.Unmarshal([]byte(word), m)
				value.Set(reflect.ValueOf(m))
				break
			}
		}
		err = json.Unmarshal([]byte(word), p)
	}
	return value, err
}

// show prints the result at an index: bytes are a command's output and its errors.
func show(value reflect.Value, index int) error {
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return nil
	}
	switch v := value.Interface().(type) {
	case []byte:
		_, err := []*os.File{os.Stdout, os.Stderr}[index].Write(v)
		return err
	case proto.Message:
		line, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(v)
		if err == nil {
			fmt.Println(string(line))
		}
		return err
	case string:
		if v != "" {
			fmt.Println(v)
		}
		return nil
	}
	if value.Kind() != reflect.Slice {
		return fmt.Errorf("a result of type %s can't be shown", value.Type())
	}
	for i := 0; i < value.Len(); i++ {
		if err := show(value.Index(i), i); err != nil {
			return err
		}
	}
	return nil
}

func openStream(service internalapi.RuntimeService, name, request string) error {
	ctx := context.Background()
	switch name {
	case "Exec":
		req := &runtimeapi.ExecRequest{}
		if err := protojson.Unmarshal([]byte(request), req); err != nil {
			return err
		}
		resp, err := service.Exec(ctx, req)
		if err != nil {
			return err
		}
		return stream(resp.Url, req.Stdin)
	case "Attach":
		req := &runtimeapi.AttachRequest{}
		if err := protojson.Unmarshal([]byte(request), req); err != nil {
			return err
		}
		resp, err := service.Attach(ctx, req)
		if err != nil {
			return err
		}
		return stream(resp.Url, req.Stdin)
	}
	return fmt.Errorf("%q is not a stream", name)
}
