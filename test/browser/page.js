// A page as it could be ours: a device with WebCrypto keys that nothing can export, and the browser's own passkeys.
// Evaluated in a page of a node; `bothy` is what the test calls.

window.bothy = (() => {
  const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
  const bytes = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  const raw = (base64url) => bytes(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  const utf8 = (string) => new TextEncoder().encode(string);

  function signed(purpose, audience, ...fields) {
    const label = utf8(`bothy-${purpose}-v1`);
    const parts = [new Uint8Array([label.length >> 8, label.length & 255]), label];
    for (const field of [audience, ...fields]) {
      const raw = typeof field === "string" ? utf8(field) : field;
      const length = new Uint8Array(4);
      new DataView(length.buffer).setUint32(0, raw.length);
      parts.push(length, raw);
    }
    return new Blob(parts).arrayBuffer();
  }

  const added = ({ rawId, response }) => ({
    id: text(rawId),
    client_data: text(response.clientDataJSON),
    attestation_object: text(response.attestationObject),
  });

  const answered = ({ rawId, response }) => ({
    id: text(rawId),
    client_data: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData),
    signature: text(response.signature),
    user_handle: response.userHandle ? text(response.userHandle) : null,
  });

  const create = async (options) =>
    added(await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) }));
  const get = async (options) =>
    answered(await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) }));

  class Device {
    static async make(name, relay = location.origin) {
      const device = new Device();
      device.name = name;
      device.relay = relay; // for whom it signs; a page is free to say anything here
      device.signing = await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"]);
      device.channel = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
      const exported = async ({ publicKey }) => new Uint8Array(await crypto.subtle.exportKey("raw", publicKey));
      device.keys = [await exported(device.signing), await exported(device.channel)];
      return device;
    }

    async sign(purpose, ...fields) {
      const covered = await signed(purpose, this.relay, ...fields);
      return text(await crypto.subtle.sign("Ed25519", this.signing.privateKey, covered));
    }

    async rest(method, path, body) {
      const headers = { "content-type": "application/json" };
      if (this.token) headers.authorization = `Bearer ${this.token}`;
      const answer = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
      return { status: answer.status, body: await answer.json() };
    }

    described(signature) {
      const [signing_key, channel_key] = this.keys.map(text);
      return { name: this.name, signing_key, channel_key, signature };
    }

    async redeem(code, hash) {
      const signature = await this.sign("invite-redeem", bytes(hash), ...this.keys, this.name, "browser");
      const answer = await this.rest("POST", "/auth/invites/redeem", { code, kind: "browser", ...this.described(signature) });
      this.id = answer.body.device_id;
      return answer;
    }

    async login() {
      const { challenge } = (await this.rest("POST", "/auth/challenge", { device_id: this.id })).body;
      const signature = await this.sign("device-login", bytes(challenge), this.id);
      const answer = await this.rest("POST", "/auth/token", { device_id: this.id, challenge, signature });
      this.token = answer.body.access_token;
      return answer;
    }

    async addPasskey(name) {
      const { options } = (await this.rest("POST", "/passkeys/challenge", {})).body;
      const credential = await create(options);
      const made = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes(credential.attestation_object)));
      const signature = await this.sign("passkey-add", raw(options.challenge), made, name);
      return this.rest("POST", "/passkeys", { name, credential, signature });
    }

    async passkeyLogin() {
      const { options } = (await this.rest("POST", "/auth/passkeys/challenge", {})).body;
      const answer = await this.rest("POST", "/auth/passkeys/login", await this.loginBody(options));
      this.id = answer.body.device_id;
      this.token = answer.body.access_token;
      return answer;
    }

    async loginBody(options) {
      const credential = await get(options);
      const signature = await this.sign("passkey-login", raw(options.challenge), ...this.keys, this.name);
      return { credential, device: this.described(signature) };
    }

    async stepUp(act) {
      const asked = (await this.rest("POST", "/step-up/challenges", act)).body;
      const credential = await get(asked.passkey);
      return this.rest("POST", "/step-up", { challenge: asked.challenge, credential });
    }
  }

  return { Device };
})();
