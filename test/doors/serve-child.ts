import { startServer } from "../../src/server.ts";
import { testConfig, testWorld } from "./server.ts";

// A server in a process of its own, to be killed. Its data directory is the argument.

const [dataDir = ""] = process.argv.slice(2);
const { httpUrl, grpcAddress } = await startServer(testConfig(dataDir), testWorld([]));
process.stdout.write(`${JSON.stringify({ httpUrl, grpcUrl: `http://${grpcAddress}` })}\n`);
