#: what An asyncio server with a client that asks each 100 ms.
#: healthy
import asyncio
from shared import *


async def serve(reader, writer):
    while await reader.read(100):
        spin(0.002)
        writer.write(b"answer")
    writer.close()


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", 7430):
        reader, writer = await asyncio.open_connection("127.0.0.1", 7430)
        for _ in range(12):
            writer.write(b"question")
            await reader.read(100)
            await asyncio.sleep(0.1)
        writer.close()


asyncio.run(main())
