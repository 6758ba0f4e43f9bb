/** Server-sent events out of a stream of text. The browser's own EventSource can send no token. */

export interface Message {
  id: string;
  event: string;
  data: string;
}

export async function* messages(chunks: AsyncIterable<string>): AsyncGenerator<Message> {
  let rest = "";
  for await (const chunk of chunks) {
    rest = (rest + chunk).replaceAll("\r\n", "\n");
    let end: number;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const message = parsed(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (message) yield message;
    }
  }
}

/** Null for a comment: the service only says that it is there. */
function parsed(block: string): Message | null {
  const message: Message = { id: "", event: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "data") data.push(value);
    else if (name === "id" || name === "event") message[name] = value;
  }
  if (data.length === 0) return null;
  message.data = data.join("\n");
  return message;
}
