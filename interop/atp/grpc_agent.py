"""An agent on grpcio, generated from our definition. Prints its port. With `unary` it has no `ExecuteStream`."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import grpc

import agent_pb2
import agent_pb2_grpc
import work


class Unary(agent_pb2_grpc.AgentServicer):
    def Execute(self, request, context):
        response = list(work.steps(json.loads(request.request_json)))[-1]
        return agent_pb2.Response(response_json=json.dumps(response).encode())


class Streaming(agent_pb2_grpc.AgentServicer):
    def ExecuteStream(self, request, context):
        for message in work.steps(json.loads(request.request_json)):
            text = json.dumps(message, ensure_ascii=False).encode()
            if "event_type" in message:
                yield agent_pb2.Message(event_json=text)
            else:
                yield agent_pb2.Message(response_json=text)


server = grpc.server(ThreadPoolExecutor(4))
agent_pb2_grpc.add_AgentServicer_to_server(Unary() if "unary" in sys.argv else Streaming(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(port, flush=True)
server.wait_for_termination()
