// @vitest-environment node
import { expect, test } from "vitest";

import { messages, type Message } from "./sse";

async function* chunked(...chunks: string[]): AsyncGenerator<string> {
  for (const chunk of chunks) yield await Promise.resolve(chunk);
}

async function all(...chunks: string[]): Promise<Message[]> {
  const found: Message[] = [];
  for await (const message of messages(chunked(...chunks))) found.push(message);
  return found;
}

const TEXT = 'id: 7\nevent: note\ndata: {"a": 1}\n\n: still here\n\ndata: two\ndata: lines\n\n';
const FOUND = [
  { id: "7", event: "note", data: '{"a": 1}' },
  { id: "", event: "message", data: "two\nlines" },
];

test("messages are the same wherever the stream is cut", async () => {
  for (let cut = 0; cut <= TEXT.length; cut++) {
    expect(await all(TEXT.slice(0, cut), TEXT.slice(cut))).toEqual(FOUND);
  }
  expect(await all(...Array.from(TEXT))).toEqual(FOUND);
});

test("lines may end the Windows way, also when cut in between", async () => {
  const text = TEXT.replaceAll("\n", "\r\n");
  for (let cut = 0; cut <= text.length; cut++) {
    expect(await all(text.slice(0, cut), text.slice(cut))).toEqual(FOUND);
  }
});

test("a message that was not finished is not given out", async () => {
  expect(await all("data: one\n\ndata: tw")).toEqual([{ id: "", event: "message", data: "one" }]);
});

test("data may hold colons, and only one space after the first is dropped", async () => {
  const [message] = await all("data:  a: b\n\n");
  expect(message?.data).toBe(" a: b");
});
