"""Calls every operation of the interface as a Python program with grpcio does.

    python3 grpcio_client.py ADDRESS TOKEN DESCRIPTOR_SET

Prints what it saw as one JSON object; the test that runs it judges.
"""

import json
import sys
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

ADDRESS, TOKEN, DESCRIPTOR_SET = sys.argv[1:]
DEADLINE = 20  # seconds
OPTIONS = [("grpc.enable_http_proxy", 0)]


def load_pool():
    files = descriptor_pb2.FileDescriptorSet()
    with open(DESCRIPTOR_SET, "rb") as source:
        files.ParseFromString(source.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return pool


POOL = load_pool()
FACTORY = message_factory.MessageFactory(POOL)


def message_class(name):
    return FACTORY.GetPrototype(POOL.FindMessageTypeByName(name))


class Caller:
    """One agent or device: its id travels with every call."""

    def __init__(self, channel, agent_id, token=TOKEN):
        self.channel = channel
        self.metadata = (("authorization", f"Bearer {token}"), ("x-agent-id", agent_id))

    def call(self, rpc, _timeout=DEADLINE, **fields):
        """Makes one call of `Service.Method` and returns what it answered."""
        stub, request = self._stub(rpc, fields)
        return stub(request, metadata=self.metadata, timeout=_timeout)

    def future(self, rpc, **fields):
        """Begins a call, and returns what its answer will be."""
        stub, request = self._stub(rpc, fields)
        return stub.future(request, metadata=self.metadata, timeout=DEADLINE)

    def _stub(self, rpc, fields):
        method = self._method(rpc)
        start = self.channel.unary_stream if rpc == "SyncService.Subscribe" else self.channel.unary_unary
        answer = message_class(method.output_type.full_name)
        stub = start(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=message_class(method.input_type.full_name).SerializeToString,
            response_deserializer=answer.FromString,
        )
        request = message_class(method.input_type.full_name)()
        json_format.ParseDict(fields, request, descriptor_pool=POOL)
        return stub, request

    def error_of(self, rpc, _timeout=DEADLINE, **fields):
        """Makes a call that must fail, and returns all that the error says."""
        try:
            answer = self.call(rpc, _timeout=_timeout, **fields)
            if rpc == "SyncService.Subscribe":
                list(answer)
        except grpc.RpcError as error:
            return describe(error)
        raise AssertionError(f"{rpc} did not fail")

    @staticmethod
    def _method(rpc):
        service, method = rpc.split(".")
        return POOL.FindServiceByName(f"sealflow.v1.{service}").FindMethodByName(method)


def describe(error):
    status = message_class("google.rpc.Status")()
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status.ParseFromString(value)
    details = {}
    for detail in status.details:
        name = detail.type_url.split("/")[-1]
        details[name] = to_dict(message_class(name).FromString(detail.value))
    return {"code": error.code().name, "message": error.details(), "details": details}


def to_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True, descriptor_pool=POOL)


def work(agent, tasks):
    """Is an agent for so many tasks: counts the words of their input."""
    while tasks > 0:
        for task in agent.call("AgentService.PollTasks", wait="10s").tasks:
            words = len(json.loads(task.input)["text"].split())
            output = json.dumps({"words": words, "key": task.encryption_key})
            agent.call("AgentService.CompleteTask", task_id=task.id, lease_token=task.lease_token, output=output)
            tasks -= 1


def workflows_and_agents(channel, seen):
    laptop, counter = Caller(channel, "laptop"), Caller(channel, "counter")
    payload = "x" * 1048576
    created = laptop.call("WorkflowService.CreateWorkflow", name="Count", encrypted_data=payload, encryption_key="k")
    seen["GetWorkflow"] = len(laptop.call("WorkflowService.GetWorkflow", id=created.id).encrypted_data)
    created.encrypted_data = ""
    seen["CreateWorkflow"] = to_dict(created)
    seen["ListWorkflows"] = to_dict(laptop.call("WorkflowService.ListWorkflows", limit=1))
    registered = laptop.call("AgentService.RegisterAgent", id="counter", type="worker", capabilities=["text"])
    seen["RegisterAgent"] = to_dict(registered)
    seen["GetAgent"] = to_dict(laptop.call("AgentService.GetAgent", id="counter"))
    seen["ListAgents"] = to_dict(laptop.call("AgentService.ListAgents", status="AGENT_STATUS_ACTIVE"))

    agent = threading.Thread(target=work, args=(counter, 2))
    agent.start()
    text = json.dumps({"text": "to be or not to be"})
    run = laptop.call("WorkflowService.ExecuteWorkflow", id=created.id, input=text, wait="10s")
    seen["ExecuteWorkflow"] = to_dict(run)
    seen["ExecuteAgent"] = to_dict(laptop.call("AgentService.ExecuteAgent", id="counter", input=text, wait="10s"))
    agent.join()


def state(channel, seen):
    laptop, phone = Caller(channel, "laptop"), Caller(channel, "phone")
    note = {"type": "note", "entity_id": "n1", "version": "1.0.0"}
    stream = phone.call("SyncService.Subscribe")
    updates = [next(stream), next(stream)]
    pushed = laptop.call("SyncService.PushState", encrypted_data="c2VhbGVk", **note)
    updates.append(next(stream))
    stream.cancel()
    seen["PushState"] = to_dict(pushed)
    seen["Subscribe"] = [to_dict(update) for update in updates]
    seen["PullState"] = to_dict(phone.call("SyncService.PullState", since=0))
    seen["conflict"] = phone.error_of("SyncService.PushState", encrypted_data="b3RoZXI=", **note)


def refusals(channel, seen):
    """Among them one with as many details as fit: grpcio gives up on large ones."""
    laptop = Caller(channel, "laptop")
    many = [
        {"type": "note", "entity_id": f"{index:0256d}", "version": "1.0.0", "encrypted_data": "x"}
        for index in range(200)
    ]
    laptop.call("SyncService.PushState", records=many, atomic=True)
    others = [{**record, "encrypted_data": "y"} for record in many]
    seen["conflicts"] = laptop.error_of("SyncService.PushState", records=others, atomic=True)
    seen["no workflow"] = laptop.error_of("WorkflowService.GetWorkflow", id="wf_none")
    seen["no agent"] = laptop.error_of("AgentService.ExecuteAgent", id="nobody")
    seen["no name"] = laptop.error_of("WorkflowService.CreateWorkflow")
    forger = Caller(channel, "laptop", token=TOKEN[:-8] + "AAAAAAAA")
    seen["no token"] = forger.error_of("WorkflowService.ListWorkflows")


def odd_ways(channel, seen):
    """Large, compressed, many at once, late and cancelled."""
    laptop = Caller(channel, "laptop")
    large = "x" * 5 * 1048576
    seen["too large"] = laptop.error_of("WorkflowService.CreateWorkflow", name="w", encrypted_data=large)
    nobody = Caller(channel, "laptop", token="")
    seen["nobody, too large"] = nobody.error_of("WorkflowService.CreateWorkflow", name="w", encrypted_data=large)
    laptop.metadata += (("x-large", "x" * 7000), ("x-trace-bin", b"\x00\xff"))
    calls = [laptop.future("WorkflowService.ListWorkflows", limit=1) for _ in range(500)]
    seen["many"] = sum(len(call.result().workflows) for call in calls)
    seen["late"] = laptop.error_of("SyncService.Subscribe", _timeout=0.5)["code"]
    left = laptop.future("AgentService.PollTasks", wait="20s")
    left.cancel()
    seen["cancelled"] = left.cancelled()
    with grpc.insecure_channel(ADDRESS, options=OPTIONS, compression=grpc.Compression.Gzip) as zipping:
        made = Caller(zipping, "laptop").call("WorkflowService.CreateWorkflow", name="w", encrypted_data="x" * 1048576)
        seen["compressed"] = len(made.encrypted_data)


def main():
    seen = {}
    with grpc.insecure_channel(ADDRESS, options=OPTIONS) as channel:
        workflows_and_agents(channel, seen)
        state(channel, seen)
        refusals(channel, seen)
        odd_ways(channel, seen)
    print(json.dumps(seen))


main()
