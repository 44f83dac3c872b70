import type { Server } from "node:http";
import type { Socket } from "node:net";

/**
 * Answers what closes the connections on which nothing is under way: those that wait for another
 * request, and those that never had one, which Node's own closeIdleConnections passes over.
 */
export function idleCloser(server: Server): () => void {
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () => {
    server.closeIdleConnections();
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
  };
}
