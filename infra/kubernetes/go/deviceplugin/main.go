// Command deviceplugin offers GPUs that are not there to a kubelet, as NVIDIA's plugin offers real
// ones: deviceplugin FOLDER COUNT.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	socket = "berth-gpus.sock"
	poll   = 100 * time.Millisecond
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	count int
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var devices []*api.Device
	for i := 0; i < p.count; i++ {
		devices = append(devices, &api.Device{ID: fmt.Sprintf("GPU-%d", i), Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return answer, nil
}

func main() {
	folder := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	for {
		if err := serve(folder, count); err != nil {
			log.Print(err)
		}
		time.Sleep(poll)
	}
}

// serve offers the devices until the kubelet starts anew, which removes the sockets of plugins.
func serve(folder string, count int) error {
	kubelet, own := filepath.Join(folder, "kubelet.sock"), filepath.Join(folder, socket)
	if !exists(kubelet) {
		return nil
	}
	os.Remove(own)
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, &plugin{count: count})
	go server.Serve(listener)
	if err := register(kubelet); err != nil {
		return err
	}
	for exists(own) {
		time.Sleep(poll)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func register(kubelet string) error {
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: "nvidia.com/gpu"}
	deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(deadline, request)
	return err
}
