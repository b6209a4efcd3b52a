// Passkeys: an element with data-passkey has its form ask the browser's authenticator, fill the answer in, and go off.
"use strict";

const bytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));

const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const known = (data) => data.known.split(" ").filter(Boolean).map((id) => ({ type: "public-key", id: bytes(id) }));

async function create(data) {
  const publicKey = {
    challenge: bytes(data.challenge),
    rp: { name: "Sluice" },
    user: { id: new TextEncoder().encode(data.user), name: data.name, displayName: data.name },
    pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: "public-key", alg })),
    excludeCredentials: known(data),
    authenticatorSelection: { residentKey: "preferred", userVerification: "preferred" },
    attestation: "none",
  };
  const { response } = await navigator.credentials.create({ publicKey });
  return { client: response.clientDataJSON, attestation: response.attestationObject };
}

async function get(data) {
  const publicKey = {
    challenge: bytes(data.challenge),
    allowCredentials: known(data),
    userVerification: data.verification,
  };
  const { rawId, response } = await navigator.credentials.get({ publicKey });
  const { clientDataJSON: client, authenticatorData, signature, userHandle } = response;
  return { credential: rawId, client, data: authenticatorData, signature, user: userHandle ?? new ArrayBuffer(0) };
}

for (const asked of window.PublicKeyCredential ? document.querySelectorAll("[data-passkey]") : []) {
  const form = asked.closest("form");
  const failed = form.querySelector("[data-failed]");
  asked.hidden = true;
  form.querySelector("button").disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failed.hidden = true;
    try {
      const answer = await (asked.dataset.passkey === "create" ? create : get)(asked.dataset);
      for (const [name, value] of Object.entries(answer)) form.elements[name].value = text(value);
      form.submit();
    } catch (error) {
      console.warn(error);
      failed.hidden = false;
    }
  });
}
