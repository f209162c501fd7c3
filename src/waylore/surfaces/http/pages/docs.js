// Show the operations of the service. The key stays in the field: it is sent to the service and stored nowhere.
const form = document.getElementById("access");
const key = document.getElementById("key");

function addKey(request) {
  const isSent = request.headers.Authorization || request.headers["X-API-Key"]; // the button Authorize adds it
  if (key.value && !isSent) request.headers.Authorization = `Bearer ${key.value}`;
  return request;
}

const url = "openapi.json";
const page = SwaggerUIBundle({ url, dom_id: "#operations", requestInterceptor: addKey, validatorUrl: null });

form.addEventListener("submit", (event) => {
  event.preventDefault();
  page.specActions.download(url);
});
