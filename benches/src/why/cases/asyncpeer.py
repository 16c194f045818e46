#: what An asyncio client (epoll) awaits eight answers at once, five times; a slow server takes 80 ms for each.
#: helper {prog} {mode} helper
#: cause syscall=epoll_wait|epoll_pwait object*=127.0.0.1:7403
#: cause syscall=epoll_wait|epoll_pwait text*=127.0.0.1:7403
import asyncio
from shared import *


async def serve(reader, writer):
    while await reader.read(100):
        if ON:
            await asyncio.sleep(0.08)
        writer.write(b"answer")


async def server():
    async with await asyncio.start_server(serve, "127.0.0.1", 7403) as s:
        ready()
        await s.serve_forever()


async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", 7403)
    for _ in range(5):
        writer.write(b"question")
        assert await reader.read(100)
        await asyncio.sleep(0.01)
    writer.close()


async def client():
    await asyncio.gather(*[ask() for _ in range(8)])


if ROLE:
    name("backend")
    asyncio.run(server())
name("client")
spin(0.1)
asyncio.run(client())
