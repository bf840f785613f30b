"""
A client for a server that is running:

    ABX_TEMPLATE_URL=http://127.0.0.1:9000 ABX_SERVER_TOKEN=… python3 call_api.py
"""

from agent_sandbox import Client, SandboxError

with Client() as client:
    print("health:", client.health()["status"])
    print("commands:", ", ".join(command["name"] for command in client.discover()))
    print("hello:", client.call("hello", name="Ada"))
    print("visit:", client.call("visit"))
    print("route:", client.get("/hello/Ada")["greeting"])
    for name, value in client.events("/ticks", query={"count": 2}):
        print("event:", name, value)
    client.call("upload", path="note.txt", content="hello\n")
    print("shell:", client.post("/shell", {"command": "cat note.txt"})["stdout"].strip())
    try:
        client.post("/shell", {"command": "rm note.txt"})
    except SandboxError as error:
        print("refused:", error.type, error.code)
